"""Optimizers as pairs of functions over matrices, and learning rate schedules."""
