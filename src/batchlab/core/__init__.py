"""The vocabulary: plain values, checked when made; no I/O, no training framework."""
