"""How many training examples the paper's datasets have: what an epoch is."""

from __future__ import annotations

LM1B_SENTENCES = 30_301_028
MNIST_IMAGES = 55_000
"""Of Fashion MNIST too: 5,000 of the 60,000 official ones validate."""
