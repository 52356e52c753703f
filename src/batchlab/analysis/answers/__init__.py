"""What a batch size answers: minimum, best of m, confirmed, and the metaparameters to use."""
