"""Why a cut gives another gradient than the whole batch: what can be switched off is, one thing after another.

Batch statistics, dropout and bounds on the gradient make it more than a weighted sum over examples. If the difference
goes when they do, they are the cause. What still differs without them is a matter of weights: see `doctor.weights`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from batchlab.doctor.bench import NOTHING, Bench, Off, Way
from batchlab.doctor.causes import Cause, Finding
from batchlab.doctor.conditions import SMALL, Condition
from batchlab.doctor.cut import Cut
from batchlab.doctor.gradient import Gradient, combination, distance, factor_between
from batchlab.doctor.weights import Weights, places

WITHOUT = {
    Condition.BATCH_NORM: "with running statistics",
    Condition.DROPOUT: "without dropout (evaluation mode)",
    Condition.CLIPPING: "with a loss so small that nothing is clipped",
}


@dataclass(frozen=True)
class Diagnosis:
    """One cut that gives another gradient, and the bench to experiment on."""

    bench: Bench
    cut: Cut
    tolerance: float

    def findings(self) -> list[Finding]:
        """Return the causes that were found, none where none is known."""
        if not self.bench.found(self.cut).is_finite:
            return [self._not_finite()]
        random = self._randomness()
        if random is not None:
            return [random]
        if self.bench.can_repeat and self._error(self._active) <= self.tolerance:
            needed = frozenset(each for each in self._active if self._is_needed(each))
            return [self._switched(each, needed) for each in sorted(needed)]
        if self.cut.padding != "as it is":
            return self._of_padding()
        weights = Weights(self.bench, self.cut, self._active, self.tolerance)
        also = (each for each in sorted(self._active) if self._also(each))
        return [*weights.findings(), *(self._switched(each, self._active) for each in also)]

    def _not_finite(self) -> Finding:
        bad = [rows for rows in self.cut.microbatches if not self.bench.alone(rows).is_finite]
        where = f"neither is that of {places(bad[0])} alone" if bad else "that of each microbatch alone is"
        return Finding(Cause.NOT_FINITE, f"the gradient of the whole batch is finite, and this one is not; {where}")

    @cached_property
    def _active(self) -> Off:
        """What of all that can be switched off changes a gradient here; a bound on it might change another one."""
        return frozenset(each for each in Condition if self.bench.can_repeat and self._is_active(each))

    def _is_active(self, condition: Condition) -> bool:
        off = frozenset({condition})
        try:
            if condition == Condition.CLIPPING:  # the gradient of a part may reach a bound that this one does not
                return self._is_unbounded(off)
            if condition == Condition.DROPOUT and not self._is_random(off):
                return False
            return self._differ(self.bench.found(self.cut, off), self.bench.found(self.cut)) or self._differ(
                self._whole(off), self._whole(NOTHING)
            )
        except Exception:  # a step that cannot be run so
            return False

    def _is_random(self, off: Off) -> bool:
        """Return whether it is random numbers that are switched off: evaluation mode may switch off anything."""
        if self._differ(self.bench.alone(self.bench.whole, NOTHING, Way(seed=1)), self._whole(NOTHING)):
            return True
        return self.bench.num_draws(off) != self.bench.num_draws(NOTHING)  # a step may seed them by itself

    def _is_unbounded(self, off: Off) -> bool:
        """Return whether small gradients are in proportion to the loss: else something is added to them."""
        smaller = Way(small=SMALL / 2)
        return not (
            self._differ(self.bench.alone(self.bench.whole, off, smaller), self._whole(off))
            or self._differ(self.bench.found(self.cut, off, smaller), self.bench.found(self.cut, off))
        )

    def _is_needed(self, condition: Condition) -> bool:
        """Return whether the difference goes only if this, too, is switched off."""
        return self._error(self._active - {condition}) > self.tolerance

    def _also(self, condition: Condition) -> bool:
        """Return whether something that can be switched off is a cause beside another one."""
        live = self._active - {condition}
        if condition == Condition.CLIPPING:  # in its place it only makes a gradient shorter
            found, unbounded = (self.bench.found(self.cut, off) for off in (live, self._active))
            is_shorter = factor_between(found, unbounded, self.tolerance) is not None
            return (
                self._differ(found, unbounded)
                and not is_shorter
                and factor_between(self._whole(live), self._whole(self._active), self.tolerance) is not None
            )
        parts = [self.bench.alone(rows, live) for rows in self.cut.microbatches]
        return combination(self._whole(live), parts).rest > self.tolerance

    def _switched(self, condition: Condition, off: Off) -> Finding:
        before, after = self._error(off - {condition}), self._error(off)
        return Finding(Cause(condition), f"{WITHOUT[condition]} the relative error is {after:.2g}, else {before:.2g}")

    def _error(self, off: Off) -> float:
        whole = self._whole(off)
        return float((self.bench.found(self.cut, off).values - whole.values).norm()) / whole.norm

    def _whole(self, off: Off) -> Gradient:
        return self.bench.alone(self.bench.whole, off)

    def _randomness(self) -> Finding | None:
        """Return what is told of a step that nothing can repeat, or that draws random numbers other than dropout's."""
        whole = self._whole(self._active)
        again = distance(self.bench.repeated(self.bench.whole, self._active), whole)
        if again > self.tolerance:
            return Finding(Cause.RANDOMNESS, f"the same batch with the same seed gives gradients {again:.2g} apart")
        other = distance(self.bench.alone(self.bench.whole, self._active, Way(seed=1)), whole)
        if other <= self.tolerance:
            return None
        told = f"the same batch with another seed gives a gradient {other:.2g} apart"
        if not self.bench.can_repeat and self._is_calm_without_dropout():
            return Finding(Cause.DROPOUT, f"{told}, and in evaluation mode it does not; nothing else can be told")
        return Finding(Cause.RANDOMNESS, f"{told}, also without dropout; nothing else can be told")

    def _is_calm_without_dropout(self) -> bool:
        off = frozenset({Condition.DROPOUT})
        return not self._differ(self.bench.alone(self.bench.whole, off, Way(seed=1)), self._whole(off))

    def _of_padding(self) -> list[Finding]:
        """Return padding as the cause where it makes a difference to the same cut; else that cut's causes."""
        plain = Diagnosis(self.bench, self.cut.without_padding(), self.tolerance)
        apart = distance(self.bench.found(self.cut, self._active), self.bench.found(plain.cut, self._active))
        if apart > self.tolerance:
            return [Finding(Cause.PADDING, f"other padding of the same microbatches moves the gradient by {apart:.2g}")]
        return plain.findings()

    def _differ(self, one: Gradient, other: Gradient) -> bool:
        return distance(one, other) > self.tolerance
