"""What can be run by name beside the built-in studies: the paper's workloads, and a small sibling of each."""
