"""What the tool says in sentences, by what they are of: each with its range, and none that claims more than that."""
