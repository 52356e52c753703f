"""Questions about all the trials of studies, not the best alone: budgets, outcomes, robustness."""
