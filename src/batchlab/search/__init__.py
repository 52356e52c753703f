"""Which points are tried and who trains on: samplers and the race. Nothing is trained here."""
