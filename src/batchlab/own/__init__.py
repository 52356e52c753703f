"""Studies of the user's own: a network and data of PyTorch, in one file of Python, or at a prompt."""
