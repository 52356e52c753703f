"""The figure of measured throughput: examples per second against batch size, with the fitted line."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from batchlab.analysis import StepTimes, Throughput
from batchlab.analysis.text import count, significant, span
from batchlab.plots.answers import INTERVAL
from batchlab.plots.draw import draw_sheet
from batchlab.plots.panel import Panel, Point, Series
from batchlab.plots.scales import log_axis
from batchlab.plots.sheet import Sheet
from batchlab.plots.steps import BATCH_SIZE
from batchlab.plots.style import ShownFigure

_NUM_FITTED = 100
SHARED_CORES = "more workers than cores"


def throughput_data(throughput: Throughput) -> Sheet:
    """Return examples per second of all workers together, by batch size; a curve for each number of workers."""
    series = tuple(_series(throughput, throughput.workload))
    points = [point for one in series for point in one.points]
    bounds = [each for point in points for each in (point.y, point.low, point.high)]
    panel = Panel(
        title=throughput.workload,
        x_axis=log_axis(BATCH_SIZE, "log2", [point.x for point in points], ticks="numbers"),
        y_axis=log_axis("Examples per second", "log10", bounds, ticks="numbers"),
        series=series,
        legend=None,
    )
    return Sheet(caption=_caption(throughput), columns=1, panels=(panel,), panel_aspect=1.6, width=6.4)


def throughput_figure(sheet: Sheet) -> ShownFigure:
    """Return the figure, ready to be saved."""
    return draw_sheet(sheet)


def _caption(throughput: Throughput) -> str:
    repeats = span(len(each.seconds) for each in throughput.times)
    where = f" on {throughput.machine}" if throughput.machine else ""
    points = f"Each point: the median of n = {repeats} repeats{where}."
    if throughput.workers == (1,):
        return f"{points} The line: batch size / (t0 + batch size / tau)."
    lines = f"Pale lines: batch size / (t0 + local batch size / tau + exchange), {_fit_words(throughput)}."
    return f"{points} {lines}{' Squares: ' + SHARED_CORES + '.' if _shared(throughput) else ''}"


def _shared(throughput: Throughput) -> list[StepTimes]:
    return [each for each in throughput.times if each.is_shared]


def _series(throughput: Throughput, workload: str) -> Iterator[Series]:
    is_alone = throughput.workers == (1,)
    for workers in throughput.workers:
        own = [each for each in throughput.times if each.workers == workers]
        name = "1 worker" if workers == 1 else f"{count(workers)} workers"
        yield Series(
            label=f"measured, {name}",
            kind="measured",
            workload=workload,
            quantity=f"examples per second on {name}",
            points=tuple(map(_point, own)),
            bars=INTERVAL,
            behind=() if is_alone else (_line(throughput, workers),),
        )
    if is_alone:
        yield _fitted(throughput, workload)
    if shared := _shared(throughput):
        yield Series(
            label=SHARED_CORES,
            kind="shared cores",
            workload=workload,
            quantity="examples per second of workers that share cores",
            points=tuple(map(_point, shared)),
        )


def _point(times: StepTimes) -> Point:
    interval = times.step_seconds.interval
    low, high = (interval.low, interval.high) if interval else (None, None)
    # The longest time is the least throughput.
    return Point(
        times.batch_size,
        times.examples_per_second,
        None if high is None else times.batch_size / high,
        None if low is None else times.batch_size / low,
    )


def _fitted(throughput: Throughput, workload: str) -> Series:
    return Series(
        label=f"fit: {_fit_words(throughput)}",
        kind="fit",
        workload=workload,
        quantity="examples per second on one worker, fitted",
        points=_line(throughput, 1),
    )


def _fit_words(throughput: Throughput) -> str:
    fit = throughput.fit
    tau = significant(fit.tau) if fit.seconds_per_example else "none seen"
    return f"t0 {significant(1e3 * fit.t0)} ms, tau {tau} examples per second"


def _line(throughput: Throughput, workers: int) -> tuple[Point, ...]:
    """Return the fitted examples per second of some workers, over the batch sizes that were measured."""
    own = {each.batch_size for each in throughput.times if each.workers == workers} or throughput.batch_sizes
    grid = np.geomspace(min(own), max(own), _NUM_FITTED).tolist()
    return tuple(Point(size, size / throughput.fit.seconds_at(size / workers, workers)) for size in grid)
