"""The report: one self-contained HTML page from summaries. `tables` serves the command line too, without drawing."""
