"""The figure of tuning: the best metaparameters against batch size, the region they lie in, and two rules of thumb."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

from batchlab.analysis import Guides, TunedPoint, WorkloadSummary, guides
from batchlab.analysis.answers.tuning import RATES
from batchlab.analysis.text import span
from batchlab.errors import InputError
from batchlab.plots.draw import draw_sheet
from batchlab.plots.panel import Axis, Panel, Point, Series
from batchlab.plots.quantities import PointQuantity, effective_learning_rate, point_quantity
from batchlab.plots.scales import linear_axis, log_axis
from batchlab.plots.sheet import Sheet
from batchlab.plots.steps import BATCH_SIZE
from batchlab.plots.style import ShownFigure

_COLUMNS = 3


@dataclass(frozen=True, kw_only=True)
class TunedQuantity:
    """One quantity at every batch size that met the goal and has it."""

    name: str
    label: str
    batch_sizes: tuple[int, ...]
    values: tuple[float, ...]
    regions: tuple[tuple[float, float] | None, ...]
    """The smallest and the largest value over the top trials; None where too few were close to the best."""

    num_top: tuple[int, ...]
    is_at_boundary: tuple[bool, ...]
    guides: Guides | None

    @property
    def is_positive(self) -> bool:
        """Whether a logarithmic axis holds it."""
        return min(chain(self.values, *(region for region in self.regions if region))) > 0


@dataclass(frozen=True, kw_only=True)
class MetaparametersData:
    """Everything the figure shows, as plain numbers; no quantity where no goal was met or nothing was searched."""

    workload: str
    goal: str
    trials: str
    """How many complete trials each batch size has: `8` or `8 to 32`."""

    best: str
    """Whose metaparameters they are, for the legend."""

    quantities: tuple[TunedQuantity, ...]

    @property
    def panels(self) -> tuple[Panel, ...]:
        """One panel for each quantity."""
        return tuple(_panel(self, quantity) for quantity in self.quantities)

    def table(self) -> list[dict[str, object]]:
        """Return the rows of the CSV file, one for each quantity and batch size."""
        return [row for quantity in self.quantities for row in _rows(quantity)]


def metaparameters_data(summary: WorkloadSummary) -> MetaparametersData:
    """Return what was searched of `summary`; with a momentum, 1 - momentum and the effective learning rate too."""
    names = dict.fromkeys(name for point in summary.tuned for name in point.tuned)
    best = "confirmed point" if summary.headline == "confirmed" else "trial with the fewest steps"
    quantities = tuple(_quantities(names, summary.tuned))
    return MetaparametersData(
        workload=summary.workload,
        goal=str(summary.goal),
        trials=span(row.num_trials for row in summary.rows),
        best=best,
        quantities=quantities,
    )


def metaparameters_figure(data: MetaparametersData) -> ShownFigure:
    """Return the figure, its panels side by side; InputError where there is nothing to draw."""
    if not data.quantities:
        raise InputError(
            f"{data.workload} has no best metaparameters to draw: no trial reached {data.goal}, or nothing was "
            "searched. Give an easier goal."
        )
    columns = min(_COLUMNS, len(data.quantities))
    width = max(4.6, 3.1 * columns)
    aspect = width / columns / 2.6
    caption = f"{data.workload}: best metaparameters for {data.goal}, n = {data.trials} trials at a batch size."
    return draw_sheet(Sheet(caption=caption, columns=columns, panels=data.panels, panel_aspect=aspect, width=width))


def _quantities(names: Mapping[str, None], points: Sequence[TunedPoint]) -> Iterator[TunedQuantity]:
    rate = next((name for name in RATES if name in names), None)
    for name in names:
        yield _tuned(points, point_quantity(name), has_guides=name in RATES)
        if name == "momentum" and rate and _is_below_1(points, name):
            yield _tuned(points, effective_learning_rate(rate), has_guides=True)


def _is_below_1(points: Sequence[TunedPoint], name: str) -> bool:
    every = [each for point in points for each in (point.metaparameters, *point.top)]
    return all(each.get(name, 0.0) < 1 for each in every)


def _tuned(points: Sequence[TunedPoint], quantity: PointQuantity, has_guides: bool) -> TunedQuantity:
    needs, value = quantity.needs, quantity.value
    able = [point for point in points if set(needs) <= point.metaparameters.keys()]
    values = tuple(value(point.metaparameters) for point in able)
    tops = [[value(top) for top in point.top if set(needs) <= top.keys()] for point in able]
    # The rules are the same for anything that grows with the batch size.
    as_rates = [TunedPoint(point.batch_size, {"learning_rate": y}, ()) for point, y in zip(able, values, strict=True)]
    return TunedQuantity(
        name=quantity.name,
        label=quantity.label,
        batch_sizes=tuple(point.batch_size for point in able),
        values=values,
        regions=tuple((min(top), max(top)) if top else None for top in tops),
        num_top=tuple(len(top) for top in tops),
        is_at_boundary=tuple(bool(set(needs) & set(point.at_boundary)) for point in able),
        guides=guides(as_rates, "learning_rate") if has_guides and min(values) > 0 else None,
    )


def _panel(data: MetaparametersData, quantity: TunedQuantity) -> Panel:
    series = tuple(_series(data, quantity))
    return Panel(
        title="",
        x_axis=log_axis(BATCH_SIZE, "log2", quantity.batch_sizes, ticks="numbers"),
        y_axis=_y_axis(quantity, series),
        series=series,
        legend=None,
    )


def _y_axis(quantity: TunedQuantity, series: Sequence[Series]) -> Axis:
    held = [bound for region in quantity.regions if region for bound in region] + list(quantity.values)
    if not quantity.is_positive:
        return linear_axis(quantity.label, held)
    rules = [point.y for one in series if one.kind != "measured" for point in one.points]
    return log_axis(quantity.label, "log10", held, rules, ticks="numbers", reach=3.0)


def _series(data: MetaparametersData, quantity: TunedQuantity) -> Iterator[Series]:
    marks = zip(quantity.batch_sizes, quantity.values, quantity.regions, strict=True)
    points = tuple(Point(size, value, *(region or (None, None))) for size, value, region in marks)
    numbers = [number for number in quantity.num_top if number]
    bars = f"range of the top {span(numbers)} trials" if numbers else ""
    series = partial(Series, workload=data.workload, quantity=quantity.name)
    yield series(label=data.best, kind="measured", points=points, bars=bars)
    if quantity.guides and len(points) > 1:  # one point shows no line
        linear, square_root = (_along(quantity, rule) for rule in (quantity.guides.linear, quantity.guides.square_root))
        yield series(label="linear rule", kind="linear rule", points=linear)
        yield series(label="square-root rule", kind="square-root rule", points=square_root)
    edge = tuple(point for point, is_flagged in zip(points, quantity.is_at_boundary, strict=True) if is_flagged)
    if edge:
        yield series(label="at the edge of what was tried", kind="at the edge", points=edge)


def _along(quantity: TunedQuantity, values: Sequence[float]) -> tuple[Point, ...]:
    return tuple(Point(size, value) for size, value in zip(quantity.batch_sizes, values, strict=True))


def _rows(quantity: TunedQuantity) -> list[dict[str, object]]:
    return [
        {
            "quantity": quantity.name,
            "batch_size": batch_size,
            "value": quantity.values[i],
            "region_low": region[0] if (region := quantity.regions[i]) else None,
            "region_high": region[1] if region else None,
            "num_top": quantity.num_top[i],
            "is_at_boundary": quantity.is_at_boundary[i],
            "linear_rule": quantity.guides.linear[i] if quantity.guides else None,
            "square_root_rule": quantity.guides.square_root[i] if quantity.guides else None,
        }
        for i, batch_size in enumerate(quantity.batch_sizes)
    ]
