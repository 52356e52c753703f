"""Filling studies: worker processes, packs, progress, the runner. Here training meets the store."""
