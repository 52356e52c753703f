"""Networks, as modules: ours start alike on every device, and some have a form of their own for K trials at once."""
