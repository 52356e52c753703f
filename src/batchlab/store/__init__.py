"""Labs on disk: written whole, read without a lock."""
