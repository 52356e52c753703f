"""The points of a sweep by what became of them: goal met, goal not met, infeasible, and the best of each batch size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from batchlab.analysis import (
    ClassifiedPoints,
    as_known,
    best_values,
    classify_points,
    first_steps,
    is_cut_short,
)
from batchlab.analysis.answers.tuning import RATES
from batchlab.analysis.text import count
from batchlab.core.goal import Goal
from batchlab.core.result import StudyResult
from batchlab.core.trial import Status, Trial
from batchlab.errors import InputError
from batchlab.plots.axes import power_ticks
from batchlab.plots.draw import draw_sheet
from batchlab.plots.goal_line import goal_line
from batchlab.plots.panel import Axis, Kind, Panel, Point, Series
from batchlab.plots.quantities import PointQuantity, point_quantity
from batchlab.plots.scales import value_axis
from batchlab.plots.sheet import Sheet
from batchlab.plots.style import ShownFigure
from batchlab.plots.trained_sweep import TrainedSweep

MOST_PANELS = 12
"""Panels of a page; of more batch sizes, some are chosen where none is named."""

Place = Callable[[Trial], tuple[float, float] | None]
"""Where a trial is drawn; None where it lacks a coordinate."""

_COLUMNS = 3
_MOST_CONTOURS = 5


@dataclass(frozen=True)
class Plane:
    """The coordinates of a point; where one metaparameter was searched, the second is the best value of the metric."""

    x: PointQuantity
    y: PointQuantity | None
    others: tuple[str, ...] = ()
    """Metaparameters that were searched too and are not shown."""

    @property
    def is_rate_and_momentum(self) -> bool:
        """Whether lines of constant effective learning rate can be drawn."""
        return self.x.name in RATES and self.y is not None and self.y.name == "1 - momentum"

    def place(self, trial: Trial) -> tuple[float, float] | None:
        """Return both metaparameters; None where the trial lacks one, or where this is no plane of two."""
        x = self.x.of(trial.metaparameters)
        y = self.y.of(trial.metaparameters) if self.y else None
        return None if x is None or y is None else (x, y)


RATE_AND_MOMENTUM = Plane(point_quantity("learning_rate"), point_quantity("momentum"))
"""The paper's."""


def outcome_series(
    points: ClassifiedPoints, place: Place, workload: str, quantity: str, not_met: str | None = None
) -> tuple[Series, ...]:
    """Return the points of one study as a series for each outcome; `not_met` is what a legend says of that one."""
    groups: list[tuple[Kind, Iterable[Trial]]] = [
        ("infeasible", points.infeasible),
        ("goal not met", points.not_met),
        ("goal met", points.met),
        ("best", [points.best] if points.best else []),
    ]
    return tuple(
        Series(
            label=kind,
            kind=kind,
            workload=workload,
            quantity=quantity,
            points=tuple(Point(*at) for trial in trials if (at := place(trial))),
            legend=not_met if kind == "goal not met" else None,
        )
        for kind, trials in groups
    )


@dataclass(frozen=True, kw_only=True)
class StudyPoints:
    """The points of one study, each with its place and its outcome."""

    study: StudyResult
    """As far as all of its trials were trained."""

    is_cut_short: bool
    goal: Goal
    outcomes: ClassifiedPoints
    places: dict[int, tuple[float, float]]
    """By trial id, of those that have one."""

    @property
    def title(self) -> str:
        """Its batch size, and how long its trials were trained."""
        budget = f"{count(self.study.end_step)} steps"
        return f"B = {count(self.study.batch_size)}, {f'race ended at {budget}' if self.is_cut_short else budget}"

    def series(self) -> tuple[Series, ...]:
        """Return its points by outcome."""
        not_met = "goal not met before the race ended" if self.is_cut_short else None
        quantity = f"by {self.goal} within {count(self.study.end_step)} steps"
        return outcome_series(
            self.outcomes, lambda trial: self.places.get(trial.trial_id), self.study.workload, quantity, not_met
        )

    def rows(self, names: Sequence[str]) -> Iterator[dict[str, object]]:
        """Yield the rows of the CSV file, one for each trial."""
        steps = first_steps(self.study, self.goal)
        for trial in self.study.trials:
            if trial.status is not Status.INCOMPLETE:
                yield {
                    "batch_size": self.study.batch_size,
                    "trial_id": trial.trial_id,
                    "outcome": self._outcome(trial, steps.get(trial.trial_id)),
                    "is_best": trial == self.outcomes.best,
                    "steps_to_goal": steps.get(trial.trial_id),
                    "trained_steps": self.study.end_step,
                    "ended_by": "race" if self.is_cut_short else "budget",
                    **{name: trial.metaparameters.get(name) for name in names},
                }

    def _outcome(self, trial: Trial, step: int | None) -> Kind:
        if trial.status is Status.INFEASIBLE:
            return "infeasible"
        return "goal not met" if step is None else "goal met"


@dataclass(frozen=True, kw_only=True)
class PointsData:
    """Everything the figure shows, as plain numbers."""

    workload: str
    goal: Goal
    caption: str
    plane: Plane
    studies: tuple[StudyPoints, ...]

    @property
    def panels(self) -> tuple[Panel, ...]:
        """One panel for each batch size, all with the same axes."""
        places = [place for study in self.studies for place in study.places.values()]
        x_axis = value_axis(self.plane.x.label, [x for x, _ in places])
        if self.plane.y:
            y_axis = value_axis(self.plane.y.label, [y for _, y in places])
        else:
            y_axis = value_axis(f"Best {self.goal.metric}", [self.goal.threshold, *(y for _, y in places)])
        goal = () if self.plane.y else (goal_line(self.goal, x_axis, self.workload),)
        contours = _contours(places) if self.plane.is_rate_and_momentum and _is_log(x_axis, y_axis) else ()
        return tuple(
            Panel(
                title=study.title,
                x_axis=x_axis,
                y_axis=y_axis,
                series=(*study.series(), *goal),
                legend=None,
                contours=contours,
            )
            for study in self.studies
        )

    def table(self) -> list[dict[str, object]]:
        """Return the rows of the CSV file, one for each complete or infeasible trial."""
        trials = [trial for one in self.studies for trial in one.study.trials]
        names = list(dict.fromkeys(name for trial in trials for name in trial.metaparameters))
        return [row for study in self.studies for row in study.rows(names)]


def points_data(sweep: TrainedSweep) -> PointsData:
    """Return every complete and infeasible trial in the plane of what was searched; InputError where nothing was.

    A race that ended its trials early tells what had become of them by then, and the data say so.

    >>> from batchlab.analysis import example_workload, summarise
    >>> studies = example_workload()
    >>> summary = summarise(studies, Goal.read("val/classification_error < 0.08"))
    >>> data = points_data(TrainedSweep(summary=summary, studies=tuple(studies)))
    >>> data.studies[0].places[0], data.plane.others
    ((0.01, 0.09999999999999998), ('label_smoothing',))
    """
    plane = _plane(sweep)
    goal = sweep.summary.goal
    known = [as_known(study) for study in sweep.studies]
    bests = [best_values(study, goal) if plane.y is None else {} for study in known]
    return PointsData(
        workload=sweep.summary.workload,
        goal=goal,
        caption=_caption(sweep, plane, has_valueless=plane.y is None and any(map(_lacks_value, known, bests))),
        plane=plane,
        studies=tuple(
            _study_points(*each, goal, plane, _worst(bests, goal))
            for each in zip(sweep.studies, known, bests, strict=True)
        ),
    )


def points_figure(data: PointsData) -> ShownFigure:
    """Return the figure, its panels side by side."""
    panels = data.panels
    columns = min(_COLUMNS, len(panels))
    width = 9.0 if columns == _COLUMNS else 4.5 * columns + 0.9
    return draw_sheet(Sheet(caption=data.caption, columns=columns, panels=panels, panel_aspect=8 / 7, width=width))


def _study_points(
    study: StudyResult, known: StudyResult, best: dict[int, float], goal: Goal, plane: Plane, worst: float
) -> StudyPoints:
    place = plane.place if plane.y else _beside_best(plane.x, best, worst)
    return StudyPoints(
        study=known,
        is_cut_short=is_cut_short(study),
        goal=goal,
        outcomes=classify_points(known, goal),
        places={trial.trial_id: at for trial in _tried(known) if (at := place(trial))},
    )


def _tried(study: StudyResult) -> list[Trial]:
    return [trial for trial in study.trials if trial.status is not Status.INCOMPLETE]


def _beside_best(x: PointQuantity, best: dict[int, float], worst: float) -> Place:
    """Return where trials stand by their best value; one that diverged before it had any, at the worst."""

    def place(trial: Trial) -> tuple[float, float] | None:
        at = x.of(trial.metaparameters)
        return None if at is None else (at, best.get(trial.trial_id, worst))

    return place


def _worst(bests: Iterable[Mapping[int, float]], goal: Goal) -> float:
    """Return the worst of the trials' best values, or the goal's where there is none."""
    values = [goal.threshold, *(value for best in bests for value in best.values())]
    return max(values) if goal.is_lower_better else min(values)


def _lacks_value(study: StudyResult, best: Mapping[int, float]) -> bool:
    return any(trial.trial_id not in best for trial in _tried(study))


def _plane(sweep: TrainedSweep) -> Plane:
    """Return the learning rate and the momentum where both were searched, else the first two that were."""
    found: dict[str, set[float]] = {}
    for study in sweep.studies:
        for trial in study.trials:
            for name, value in trial.metaparameters.items():
                found.setdefault(name, set()).add(value)
    searched = [name for name, values in found.items() if len(values) > 1]
    if not searched:
        raise InputError(
            f"{sweep.summary.workload} has no points to tell apart: all trials have the same metaparameters. "
            "Search one, in [search_space] of the spec."
        )
    first = sorted(searched, key=lambda name: 0 if name in RATES else 1 if name == "momentum" else 2)
    y = point_quantity(first[1]) if len(first) > 1 else None
    return Plane(point_quantity(first[0]), y, tuple(first[2:]))


def _contours(places: Sequence[tuple[float, float]]) -> tuple[float, ...]:
    """Return the powers of ten that x / y passes, every second or third where they would crowd."""
    ratios = [x / y for x, y in places]
    return tuple(10.0**k for k in power_ticks(min(ratios), max(ratios), 10, _MOST_CONTOURS))


def _is_log(*axes: Axis) -> bool:
    return all(axis.scale != "linear" for axis in axes)


def _caption(sweep: TrainedSweep, plane: Plane, *, has_valueless: bool) -> str:
    found = [f"{sweep.summary.workload}: complete and infeasible trials, by {sweep.summary.goal}."]
    if has_valueless:
        found.append("Trials that diverged before any value stand at the worst one.")
    if plane.others:
        found.append(f"Searched too, and not shown: {', '.join(plane.others)}.")
    if sweep.is_cut_short:
        found.append(
            "A race ended the trials early: what would have become of those that had not met the goal by then is not "
            "known."
        )
    return " ".join([*found, *([sweep.share] if sweep.share else [])])
