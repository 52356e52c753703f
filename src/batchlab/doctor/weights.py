"""What a loop makes of the gradients of its microbatches: with which weights it adds them up, and with which it should.

The whole batch's gradient is sum b_i g_i of those of the microbatches, and what the loop has found is sum a_i g_i. Each
mistake is put together from the g_i and compared. Where there are no such b_i, the examples depend on each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from batchlab.doctor.bench import USUAL, Bench, Off, Way
from batchlab.doctor.causes import Cause, Finding
from batchlab.doctor.conditions import Condition
from batchlab.doctor.coupling import coupling_layer
from batchlab.doctor.cut import Cut
from batchlab.doctor.gradient import Combination, Gradient, combination, distance, factor_between, mean

MOVED = 0.3
"""How far the model is moved to see whether the weights of microbatches stay the same, as numbers of tokens do."""

NO_WEIGHT = 1e-3
"""A microbatch with less than this, relative to the largest weight, has no part in a gradient."""

MOST_DROPPED = 64
"""Examples at the end of a batch that may have been left out, tried one number after another."""


@dataclass(frozen=True)
class Weights:
    """One cut that gives another gradient, with all switched off that is no matter of weights."""

    bench: Bench
    cut: Cut
    off: Off
    tolerance: float

    def findings(self) -> Iterator[Finding]:
        """Yield what is wrong with the sum over microbatches."""
        factor = self._times(self._whole)
        if factor is not None:
            yield self._factor(factor) if self._empty is None else self._counted(self._empty)
        elif not self._is_sum_over_examples():
            yield self._coupled()
            yield from () if self.bench.can_repeat else self._beside_batch_norm()
        else:
            yield from self._of_unequal_weights()

    @cached_property
    def _found(self) -> Gradient:
        return self.bench.found(self.cut, self.off)

    @cached_property
    def _whole(self) -> Gradient:
        return self.bench.alone(self.bench.whole, self.off)

    @cached_property
    def _parts(self) -> list[Gradient]:
        return [_finite(self.bench.alone(rows, self.off)) for rows in self.cut.microbatches]

    @cached_property
    def _right(self) -> Combination:
        """The weights that the whole batch gives its microbatches."""
        return combination(self._whole, self._parts)

    @cached_property
    def _given(self) -> Combination:
        """The weights that the loop gives them."""
        return combination(self._found, self._parts)

    def _times(self, other: Gradient) -> float | None:
        """Return the factor f for which the loop has found f times another gradient; None where there is none."""
        return factor_between(self._found, other, self.tolerance)

    def _factor(self, factor: float) -> Finding:
        return Finding(Cause.FACTOR, f"the gradient is {factor:.6g} times the right one{_origin(factor, self.cut)}")

    @property
    def _empty(self) -> range | None:
        """A microbatch without a loss, such as one of padding alone, where the loop counts it as it does the others."""
        if distance(mean(self._parts), self._found) > self.tolerance:
            return None
        pairs = zip(self.cut.microbatches, self._parts, strict=True)
        return next((rows for rows, part in pairs if not part.norm), None)

    def _counted(self, empty: range) -> Finding:
        return Finding(Cause.MEAN_OF_MEANS, f"each microbatch counts the same, even {places(empty)} without a loss")

    def _is_sum_over_examples(self) -> bool:
        """Return whether the whole batch's gradient is a sum of its parts' ones, with weights that belong to the data.

        Numbers of tokens stay the same wherever the model is; where the weights of microbatches follow their losses, as
        in the root of a mean, the examples depend on each other.
        """
        here, there = self._in_parts(USUAL), self._in_parts(Way(moved=MOVED))
        if here.rest > self.tolerance:
            return False
        apart = max(abs(one - other) for one, other in zip(here.weights, there.weights, strict=True))
        return not here.is_unique or apart <= 10 * self.tolerance * max(map(abs, here.weights))

    def _in_parts(self, way: Way) -> Combination:
        """Return the whole batch as a sum of its microbatches; of its halves where a model has too few values."""
        parts, number = self.cut.microbatches, self.bench.num_examples
        if not self._right.is_unique:
            parts = [range(number // 2), range(number // 2, number)]
        whole, *gradients = [self.bench.alone(rows, self.off, way) for rows in (self.bench.whole, *parts)]
        return combination(whole, [_finite(each) for each in gradients])

    def _coupled(self) -> Finding:
        """Return what couples the examples: a layer that says so, or the loss."""

        def run(rows: range) -> object:
            return self.bench.repeated(rows, self.off)

        told = "the gradient of the whole batch is no sum over its microbatches"
        name = coupling_layer(self.bench.model, run, self.bench.whole, self.cut.microbatches, self.tolerance)
        if name is None:
            return Finding(Cause.COUPLED, f"{told}, but no layer makes one example depend on others: the loss does")
        module = dict(self.bench.model.named_modules()).get(name, self.bench.model)
        cause = Cause.BATCH_NORM if isinstance(module, _BatchNorm) else Cause.COUPLED
        layer = f"layer `{name}` ({type(module).__name__})"
        return Finding(cause, f"{told}: the output of {layer} for one example depends on the others")

    def _beside_batch_norm(self) -> Iterator[Finding]:
        """Yield what is wrong with the weights, where batch statistics could not be switched off for the loop.

        The right weights are those without them.
        """
        right = Weights(self.bench, self.cut, frozenset({Condition.BATCH_NORM}), self.tolerance)._right
        if right.rest > self.tolerance or distance(self._sum(right.weights), self._found) <= self.tolerance:
            return
        told = f"the right weights of microbatches are {_listed(right)}"
        for words, mistaken in self._means_of_means():
            if self._times(mistaken) is not None:
                yield Finding(Cause.MEAN_OF_MEANS, f"{words}; {told}")
                return
        yield Finding(Cause.WEIGHTS, f"{told}, and added up so they are not what the loop has found")

    def _of_unequal_weights(self) -> Iterator[Finding]:
        dropped = self._dropped()
        if dropped is not None:
            yield dropped
            if self._times(self._sum(self._right.weights)) is not None:
                return
        for words, mistaken in self._means_of_means():
            factor = self._times(mistaken)
            if factor is not None:
                yield Finding(Cause.MEAN_OF_MEANS, f"{words}; {self._right_words()}")
                if dropped is None and abs(factor - 1) > self.tolerance:
                    yield self._factor(factor)
                return
        if dropped is None and self._is_known:
            yield Finding(Cause.WEIGHTS, f"microbatches have the weights {_listed(self._given)}; {self._right_words()}")

    @property
    def _is_known(self) -> bool:
        """Whether what the loop has found is a sum of its microbatches, and in one way only."""
        return self._given.rest <= self.tolerance and self._given.is_unique

    @cached_property
    def _is_kept(self) -> list[bool]:
        """Which microbatches have a part in what the loop has found."""
        if not self._is_known:
            return [True] * self.cut.num_microbatches
        largest = max(map(abs, self._given.weights))
        return [abs(weight) > NO_WEIGHT * largest for weight in self._given.weights]

    def _dropped(self) -> Finding | None:
        """Return what was left out: whole microbatches, or the last examples."""
        if self._is_known:
            largest = max(map(abs, self._right.weights))
            triples = zip(self.cut.microbatches, self._is_kept, self._right.weights, strict=True)
            lost = [rows for rows, is_kept, weight in triples if not is_kept and abs(weight) > NO_WEIGHT * largest]
            if not lost:
                return None
            told = f"{sum(map(len, lost))} of {self.bench.num_examples} examples have no part in the gradient"
            return Finding(Cause.DROPPED, f"{told}: {' and '.join(map(places, lost[:3]))}")
        most = min(max(map(len, self.cut.microbatches)), MOST_DROPPED, self.bench.num_examples - 1)
        for number in range(1, most + 1):
            if self._times(self.bench.alone(self.bench.whole[:-number], self.off)) is not None:
                return Finding(Cause.DROPPED, f"it is the gradient of the batch without its last {number} examples")
        return None

    def _means_of_means(self) -> Iterator[tuple[str, Gradient]]:
        """Yield gradients as loops make them that average means, with what they do in words."""
        shares, sizes = self.cut.shares, [size for share in self.cut.shares for size in share]
        if len(shares) > 1:
            whole_shares = [range(rows[0].start, rows[-1].stop) for rows in self.cut.rows]
            yield "each worker counts the same", mean([self.bench.alone(rows, self.off) for rows in whole_shares])
            equal = [1 / (len(shares) * len(share)) for share in shares for _ in share]
            yield "each worker counts the same, and so do its microbatches", self._sum(equal)
        yield "each microbatch counts the same", self._sum([1 / len(sizes)] * len(sizes))
        yield "each microbatch counts by its examples", self._sum([size / sum(sizes) for size in sizes])

    def _sum(self, weights: Sequence[float]) -> Gradient:
        """Return the weighted sum of the gradients of the microbatches that are kept."""
        triples = zip(weights, self._parts, self._is_kept, strict=True)
        terms = [weight * is_kept * part.values for weight, part, is_kept in triples]
        return self._found.with_values(torch.stack(terms).sum(0))

    def _right_words(self) -> str:
        if not self._right.is_unique:
            return "in the whole batch they count differently"
        return f"in the whole batch they have the weights {_listed(self._right)}"


def _finite(gradient: Gradient) -> Gradient:
    """Return the gradient of a microbatch; zeros where it has none, being all padding: a mean over nothing."""
    return gradient if gradient.is_finite else gradient.with_values(torch.zeros_like(gradient.values))


def _origin(factor: float, cut: Cut) -> str:
    """Return where a factor comes from, where it is a number of something.

    >>> _origin(0.25, Cut(((16,) * 4,))), _origin(0.3, Cut(((16,) * 4,)))
    (': 1 / 4, the number of microbatches', '')
    """
    counted = {"microbatches": cut.num_microbatches, "workers": cut.num_workers}
    if cut.num_workers > 1 and len({len(share) for share in cut.shares}) == 1:
        counted["microbatches of a worker"] = len(cut.shares[0])
    for number in sorted(set(counted.values()) - {1}, reverse=True):
        words = " or ".join(name for name, each in counted.items() if each == number)
        if abs(factor * number - 1) < 1e-3:
            return f": 1 / {number}, the number of {words}"
        if abs(factor / number - 1) < 1e-3:
            return f": {number}, the number of {words}"
    return ""


def places(rows: range) -> str:
    """Return the places of some examples, as one counts them.

    >>> places(range(6, 8)), places(range(7, 8))
    ('examples 7 to 8', 'example 8')
    """
    return f"examples {rows.start + 1} to {rows.stop}" if len(rows) > 1 else f"example {rows.stop}"


def _listed(found: Combination, most: int = 8) -> str:
    shown = [f"{weight:.4g}" for weight in found.weights[:most]]
    return ", ".join([*shown, *(["..."] if len(found.weights) > most else [])])
