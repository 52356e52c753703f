"""Training: the loop, the programs that train packs of trials, the trainer seam."""
