"""One's own steps beside the published ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from batchlab.core.goal import Goal
from batchlab.core.sweep import Sweep
from batchlab.published.points import Confidence, PublishedCurve, published_curve, published_steps


@dataclass(frozen=True, kw_only=True)
class PublishedComparison:
    """A published curve on the scale of measured steps."""

    source: str
    """The paper's figure: `Figure 1`."""

    confidence: Confidence
    steps: dict[int, float]
    """The published steps by batch size."""

    anchor: int | None
    """The batch size at which a relative curve was set equal to the measured one; None where steps were published."""

    ratios: dict[int, float]
    """Measured over published steps, at the batch sizes that both have; not at the anchor."""

    minimum_ratios: dict[int, float] = field(default_factory=dict)
    """The same of minima over trials, which is what was published; empty where `ratios` are of minima themselves."""

    @property
    def label(self) -> str:
        """What the published points are, for a legend."""
        scaled = f", equal at batch size {self.anchor:,}" if self.anchor is not None else ""
        return f"published (read off {self.source}{scaled})"

    @property
    def sentence(self) -> str:
        """How the measured steps compare, in a sentence."""
        if not self.ratios:
            return f"No batch size can be compared with the published curve ({self.source})."
        sizes = "one batch size" if len(self.ratios) == 1 else f"{len(self.ratios)} batch sizes"
        scaled = f", both taken as equal at batch size {self.anchor:,}" if self.anchor is not None else ""
        minima = _span(self.minimum_ratios) if self.minimum_ratios else ""
        return (
            f"Steps are {_span(self.ratios)} times the published ones"
            f"{f' (minima, as the published ones are, {minima} times)' if minima else ''} at the {sizes} that can be "
            f"compared ({self.source}, read off the picture with {self.confidence} confidence{scaled})."
        )


def _span(ratios: Mapping[int, float]) -> str:
    low, high = (f"{pick(ratios.values()):.2f}" for pick in (min, max))
    return low if low == high else f"{low} to {high}"


class Trained(Protocol):
    """What of a study, a sweep or its workload tells whether its steps can be compared with published ones."""

    @property
    def has_whole_data(self) -> bool:
        """Whether it was trained on all of its dataset."""
        ...

    @property
    def has_one_batch_size(self) -> bool:
        """Whether the batch size stayed as it was while it trained."""
        ...


class Summary(Trained, Protocol):
    """What of the summary of a sweep tells which published curve is its counterpart."""

    @property
    def workload(self) -> str:
        """Its name."""
        ...

    @property
    def goal(self) -> Goal:
        """What the steps lead to."""
        ...


def is_comparable(trained: Trained) -> bool:
    """Return whether steps can be compared with published ones: those are of whole datasets and of one batch size."""
    return trained.has_whole_data and trained.has_one_batch_size


def counterpart(summary: Summary) -> PublishedCurve | None:
    """Return the published curve of a sweep's workload and goal; None where its steps cannot be compared with it."""
    return published_curve(summary.workload, summary.goal) if is_comparable(summary) else None


def counterpart_steps(sweep: Sweep) -> dict[int, float]:
    """Return the published steps of a sweep's workload and goal by batch size, also of one that has not been run.

    Empty where they are not known, or only relative to each other, and where its own could not be compared with them.
    """
    return published_steps(sweep.workload.name, sweep.search.hardest_goal) if is_comparable(sweep.workload) else {}


def why_not_compared(summary: Summary) -> str:
    """Return why a sweep cannot be compared, fit for a line of its own."""
    if published_curve(summary.workload, summary.goal) is None:
        return f"there are no published steps of {summary.workload} to {summary.goal}"
    if not summary.has_whole_data:
        return f"the published steps of {summary.workload} are of all of its dataset, of which these trained on a part"
    if not summary.has_one_batch_size:
        return f"the published steps of {summary.workload} are of constant batch sizes, and these changed on the way"
    return f"no batch size that met the goal is on the published curve of {summary.workload}, which is a relative one"


def compare_published(summary: Summary, measured: Mapping[int, float]) -> PublishedComparison | None:
    """Return the published counterpart of a sweep beside its measured steps by batch size.

    A curve that was published relative to one batch size is set equal to the measured one there, or at the smallest
    batch size that both have. None where nothing was published, or where a relative curve finds no batch size to share.
    """
    curve = counterpart(summary)
    if curve is None:
        return None
    common = [size for size in curve.steps if measured.get(size)]
    if curve.relative_to is None:
        return _comparison(curve, None, 1.0, measured, common)
    if not common:
        return None
    anchor = curve.relative_to if curve.relative_to in common else common[0]
    return _comparison(curve, anchor, measured[anchor] / curve.steps[anchor], measured, common)


def _comparison(
    curve: PublishedCurve, anchor: int | None, scale: float, measured: Mapping[int, float], common: list[int]
) -> PublishedComparison:
    steps = {size: scale * value for size, value in curve.steps.items()}
    return PublishedComparison(
        source=curve.source,
        confidence=curve.confidence,
        steps=steps,
        anchor=anchor,
        ratios={size: measured[size] / steps[size] for size in common if size != anchor},
    )
