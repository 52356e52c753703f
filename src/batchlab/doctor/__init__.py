"""The equivalence doctor: does a training loop give the same gradient however a batch is cut, and if not, why?

`equivalence` runs a loop again and again from the same weights; `live` looks at a loop while it trains. What differs is
not guessed: each cause is an experiment in which the difference goes away, or a gradient that is put together as the
mistake would do it and is the one that was found.
"""
