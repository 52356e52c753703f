"""Networks as functions of their parameters, for K trials at once."""
