"""Datasets as arrays in memory, found or fetched, and the order in which trials see them."""
