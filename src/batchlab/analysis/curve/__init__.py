"""What the answers of several batch sizes say together: critical batch size and regimes."""
