"""Several workers that train one trial together: the share of a batch that each computes, and what they exchange."""
