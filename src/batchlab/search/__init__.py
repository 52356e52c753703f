"""Filling studies: spec files, points, the race, worker processes, the runner."""
