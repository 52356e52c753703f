"""Time and cost: step times are measured here, and what a user gives in their place is read. Above run and report."""
