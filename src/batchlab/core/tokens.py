"""Tokens with a meaning of their own: what fills a short sentence up, stands before its first token, and ends it."""

PADDING, START, END = 0, 1, 2
