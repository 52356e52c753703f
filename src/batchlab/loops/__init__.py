"""Training loops that are not ours: a generator of Python, or a program of any language, that reports as it trains.

`report` is what a loop tells, `rows` makes rows of that, `generator` and `command` are the two kinds of loop,
`child` is the process of a command, `journal` what is kept of a trial in training so that it can go on.
"""
