"""How often each interval holds the truth, on made studies: coverage, width and error of everything that is claimed.

    python benchmarks/coverage.py [--studies 2000] [--part "regimes" ...] [--json FILE.json]

A made study draws, for each batch size, the steps of n trials: the steps of the true curve times exp(excess), where
the excess is the search's, |z| times its spread (no point beats the best one; `two-sided` rows use z itself, log-normal
noise). Steps are read on an evaluation grid and the race ends at its factor times the fewest, as in a lab. What is
asked is asked of the package's own functions. The true critical batch size is 150 unless the row names another.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from batchlab.analysis import (
    ConfirmedSteps,
    Interval,
    StepsToResult,
    best_of,
    confirmed_steps,
    find_regimes,
    fit_critical_batch,
    fit_hyperbola,
    fit_shape,
)
from batchlab.analysis.answers.gap import earliest_step
from batchlab.analysis.interval import NO_INTERVAL
from batchlab.core.confirmation import Confirmation, Replicate
from batchlab.core.goal import Goal
from batchlab.core.measurement import Curve, Measurements
from batchlab.core.protocol import Protocol
from batchlab.core.result import StudyResult
from batchlab.core.space import SearchSpace
from batchlab.core.trial import Status, Trial

B_CRIT = 150.0
S_MIN = 1000.0
SEARCH = 0.6
"""Spread of the excess of one trial over the best point, in log steps."""

SEED_NOISE = 0.15
"""Spread of one configuration over seeds, in log steps."""

GOAL = Goal.read("val/loss < 1")
FIVE = (16, 64, 256, 1024, 4096)
TWELVE = tuple(2**k for k in range(1, 13))
THIRTEEN = tuple(2**k for k in range(13))
COARSE_S_MIN = (15.0, 60.0)


@dataclass(frozen=True)
class Design:
    """How the studies of one row are made."""

    name: str
    batch_sizes: tuple[int, ...]
    num_trials: int
    race_factor: float
    growth: float
    spread: float = SEARCH
    harder: float = 0.0
    """By how much more the excess spreads at the largest batch size than at the smallest."""

    is_two_sided: bool = False
    later: float = 0.0
    """By how much later every trial is at the largest batch size than at the smallest, in log steps."""

    censored_from: int | None = None
    """Batch sizes from here on have a budget that half of the studies spend in vain."""

    is_confirmed: bool = False
    b_crit: float = B_CRIT
    every: int = 0
    """Evaluations are at least so many steps apart. Where they are, S_min is not 1,000 but drawn, so that all places of
    a plateau on the grid have their turn."""

    s_min: float = S_MIN
    coarse_s_min: tuple[float, float] = COARSE_S_MIN

    def true_steps(self, batch_size: float) -> float:
        return self.s_min * (1 + self.b_crit / batch_size)

    def drawn(self, rng: np.random.Generator) -> Design:
        """Return the design of one study."""
        return replace(self, s_min=math.exp(rng.uniform(*np.log(self.coarse_s_min)))) if self.every else self


def at_the_ends(b_crit: int) -> tuple[Design, ...]:
    """Return studies whose critical batch size lies at an end of the batch sizes tried, or beyond."""
    name = f"B_crit {b_crit:,}"
    return (
        Design(f"{name}: 5 sizes, n = 2, race 1.2, growth 1.1", FIVE, 2, 1.2, 1.1, b_crit=b_crit),
        Design(f"{name}, two-sided: n = 3, the same", FIVE, 3, 1.2, 1.1, 0.3, is_two_sided=True, b_crit=b_crit),
        Design(f"{name}, confirmed: n = 12, 6 seeds", FIVE, 12, 1.5, 1.03, is_confirmed=True, b_crit=b_crit),
    )


DESIGNS = (
    Design("5 sizes, n = 2, race 1.2, growth 1.1", FIVE, 2, 1.2, 1.1),
    Design("5 sizes, n = 3, race 1.2, growth 1.1", FIVE, 3, 1.2, 1.1),
    Design("the same, n = 2, search harder at large B", FIVE, 2, 1.2, 1.1, harder=1.0),
    Design("the same, n = 3, search harder at large B", FIVE, 3, 1.2, 1.1, harder=1.0),
    Design("5 sizes, n = 16, race 1.5, growth 1.05", FIVE, 16, 1.5, 1.05),
    Design("5 sizes, n = 16, race 1.0, growth 1.05", FIVE, 16, 1.0, 1.05),
    Design("12 sizes, n = 32, race 1.5, growth 1.05", TWELVE, 32, 1.5, 1.05),
    Design("12 sizes, n = 100, race 1.5, growth 1.05", TWELVE, 100, 1.5, 1.05),
    Design("two-sided: 5 sizes, n = 3, race 1.2, growth 1.1", FIVE, 3, 1.2, 1.1, 0.3, is_two_sided=True),
    Design("two-sided: 5 sizes, n = 16, race 1.5, growth 1.05", FIVE, 16, 1.5, 1.05, 0.3, is_two_sided=True),
    Design("two-sided: 12 sizes, n = 32, race 1.5, growth 1.05", TWELVE, 32, 1.5, 1.05, 0.3, is_two_sided=True),
    Design("two-sided, spread twice as far at the largest B, n = 3", FIVE, 3, 1.2, 1.1, 0.3, 1.0, is_two_sided=True),
    Design("two-sided, spread three times as far, n = 3", FIVE, 3, 1.2, 1.1, 0.3, 2.0, is_two_sided=True),
    Design("two-sided, every trial later by 0.3 at the largest B, n = 3", FIVE, 3, 1.2, 1.1, 0.3, 0.0, True, 0.3),
    Design("censored: n = 3, half unreached at the two largest", FIVE, 3, 1.2, 1.1, censored_from=1024),
    Design("censored, two-sided: the same", FIVE, 3, 1.2, 1.1, 0.3, is_two_sided=True, censored_from=1024),
    Design("confirmed: 5 sizes, n = 12, 6 seeds", FIVE, 12, 1.5, 1.03, is_confirmed=True),
    Design("confirmed: 12 sizes, n = 32, 6 seeds", TWELVE, 32, 1.5, 1.03, is_confirmed=True),
    *(design for b_crit in (4, 16, 4096, 16_384, 65_536) for design in at_the_ends(b_crit)),
    Design("coarse: 3 sizes, n = 32, race 1.5, every 10", FIVE[:3], 32, 1.5, 1.0, b_crit=64, every=10),
    Design("coarse: 4 sizes, n = 8, race 1.5, every 10", FIVE[:4], 8, 1.5, 1.0, b_crit=128, every=10),
    Design("coarse: 4 sizes, n = 32, race 1.5, every 10", FIVE[:4], 32, 1.5, 1.0, b_crit=128, every=10),
    Design("coarse: 5 sizes, n = 32, race 1.5, every 5", FIVE, 32, 1.5, 1.0, every=5),
    Design(
        "coarse, censored: 4 sizes, n = 8, every 10", FIVE[:4], 8, 1.5, 1.0, censored_from=1024, b_crit=128, every=10
    ),
    Design("coarse, confirmed: 5 sizes, n = 12, 6 seeds, every 10", FIVE, 12, 1.5, 1.0, is_confirmed=True, every=10),
    *(
        Design(
            f"coarse: 12 sizes, {name}, S_min {low} to {high}, every 10",
            TWELVE,
            32,
            1.5,
            1.0,
            is_confirmed=is_confirmed,
            b_crit=64,
            every=10,
            coarse_s_min=(low, high),
        )
        for low, high in ((15, 60), (140, 300))
        for name, is_confirmed in (("n = 32", False), ("confirmed", True))
    ),
)


class Grid:
    """The steps at which trials are evaluated."""

    def __init__(self, growth: float, every: int = 0) -> None:
        steps, last = [max(every, 1)], 1e6 if every else 1e9
        while steps[-1] < last:
            steps.append(max(steps[-1] + max(every, 1), math.ceil(steps[-1] * growth)))
        self.steps = np.array([0, *steps])

    def read(self, steps: np.ndarray) -> np.ndarray:
        """Return the first evaluated steps at or after these."""
        return np.asarray(self.steps[np.searchsorted(self.steps, steps)])

    def earliest(self, steps: float) -> float:
        return earliest_step(self.steps, steps)


def excess(rng: np.random.Generator, design: Design, batch_size: int, shape: int | tuple[int, ...]) -> np.ndarray:
    place = math.log(batch_size / design.batch_sizes[0]) / math.log(design.batch_sizes[-1] / design.batch_sizes[0])
    z = rng.standard_normal(shape)
    luck = z if design.is_two_sided else np.abs(z)
    return np.asarray(design.later * place + design.spread * (1 + design.harder * place) * luck)


def make_rows(rng: np.random.Generator, design: Design, grid: Grid) -> list[StepsToResult]:
    return [make_row(rng, design, grid, batch_size) for batch_size in design.batch_sizes]


def make_row(rng: np.random.Generator, design: Design, grid: Grid, batch_size: int) -> StepsToResult:
    excesses = np.sort(excess(rng, design, batch_size, design.num_trials))
    steps = grid.read(design.true_steps(batch_size) * np.exp(excesses))
    budget = int(1e9)
    if design.censored_from is not None and batch_size >= design.censored_from:
        budget = int(design.true_steps(batch_size) * math.exp(median_minimum(design, batch_size)))
    end = min(budget, int(grid.read(np.array(design.race_factor * steps[0]))))
    row = plain_row(batch_size, [int(step) for step in steps if step <= end], design.num_trials, end)
    row = replace(row, earliest=grid.earliest(float(steps[0])))
    if not design.is_confirmed:
        return row
    median = design.true_steps(batch_size) * math.exp(excesses[0])
    return replace(row, confirmed=confirm(rng, median, grid if design.every else None))


def plain_row(batch_size: int, reached: Sequence[int], num_trials: int, end: int) -> StepsToResult:
    trial = Trial.model_construct(trial_id=0, status=Status.COMPLETE, metaparameters={}, last_step=end, round=1)
    return StepsToResult(
        batch_size=batch_size,
        steps=reached[0] if reached else None,
        trial=trial if reached else None,
        at_boundary=(),
        num_trials=num_trials,
        reached_steps=tuple(reached),
        end_step=end,
        complete=num_trials,
        infeasible=0,
        incomplete=0,
        protocol=Protocol.model_construct(kind="race", race_factor=1.5, max_steps=int(1e9)),
    )


def median_minimum(design: Design, batch_size: int) -> float:
    """Return the median of the smallest excess."""
    p = 1 - 2 ** (-1 / design.num_trials)
    place = math.log(batch_size / design.batch_sizes[0]) / math.log(design.batch_sizes[-1] / design.batch_sizes[0])
    z = statistics.NormalDist().inv_cdf(p if design.is_two_sided else (1 + p) / 2)
    return design.spread * (1 + design.harder * place) * z


def confirm(rng: np.random.Generator, median: float, grid: Grid | None) -> ConfirmedSteps | None:
    """Confirm the winner: its configuration lies above the best one by its excess, seeds scatter about that."""
    exact = median * np.exp(SEED_NOISE * rng.standard_normal(6))
    steps = [int(step) for step in (grid.read(exact) if grid else np.ceil(exact))]
    answer = confirmed_steps(confirmed_study({0: steps}, 6), GOAL)
    return replace(answer, earliest=grid.earliest(answer.steps)) if answer and answer.steps and grid else answer


def confirmed_study(steps: dict[int, list[int]], seeds: int) -> StudyResult:
    replicates = [
        Replicate.model_construct(trial_id=trial_id, replicate=k, goal_step=step, last_step=step)
        for trial_id, found in steps.items()
        for k, step in enumerate(found, 1)
    ]
    made = Confirmation.model_construct(
        goal=GOAL, seeds=seeds, trial_ids=tuple(steps), end_step=int(1e9), replicates=tuple(replicates)
    )
    trials = [
        Trial.model_construct(trial_id=trial_id, status=Status.COMPLETE, metaparameters={}, last_step=0)
        for trial_id in steps
    ]
    rows = Measurements.of([Curve(0, np.array([0]), {"val/loss": np.array([3.0])})])
    return StudyResult("a/b/c", 1, tuple(trials), rows, SearchSpace({}), 0, Protocol(kind="full"), made)


def holds(interval: Interval, truth: float) -> bool:
    return (interval.low is None or interval.low <= truth) and (interval.high is None or truth <= interval.high)


def width(interval: Interval) -> float:
    if interval.low is None or interval.high is None:
        return math.inf
    return math.log(interval.high / interval.low)


def median(values: Sequence[float]) -> float | None:
    """Return the median, or None where it is infinite."""
    found = float(np.median(values))
    return found if math.isfinite(found) else None


# What is measured: a list of plain rows each.


def measure_best_of(studies: int) -> list[dict[str, Any]]:
    return [_best_of_row(n, studies) for n in (6, 8, 12, 16, 24, 32, 50, 64, 100)]


def _best_of_row(num_trials: int, studies: int) -> dict[str, Any]:
    rng = np.random.default_rng(num_trials)
    excesses = np.sort(SEARCH * np.abs(rng.standard_normal((studies, num_trials))), axis=1)
    answers = [best_of([round(1e9 * math.exp(e)) for e in row], num_trials) for row in excesses]
    found = [answer for answer in answers if answer is not None]
    m = found[0].m
    truth = 1e9 * math.exp(SEARCH * statistics.NormalDist().inv_cdf(1 - 2 ** (-1 / m) / 2))
    return {
        "n": num_trials,
        "m": m,
        "coverage": float(np.mean([holds(answer.interval, truth) for answer in found])),
        "width": median([width(answer.interval) for answer in found]),
        "bias": float(np.median([answer.steps or math.inf for answer in found])) / truth - 1,
    }


def measure_confirmed(studies: int) -> list[dict[str, Any]]:
    given = [(6, 1), (6, 3), (7, 5), (12, 3), (12, 10), (20, 3)]
    not_given = [(5, 1), (5, 3), (6, 5), (6, 10)]
    return [_confirmed_row(seeds, points, studies) for seeds, points in (*given, *not_given)]


def _confirmed_row(seeds: int, points: int, studies: int) -> dict[str, Any]:
    """Points of equal medians are the worst case: the choice among them is all luck."""
    rng = np.random.default_rng(seeds)
    truth, intervals = 1e6, []
    for draws in np.exp(SEED_NOISE * rng.standard_normal((studies, points, seeds))):
        steps = {point: [round(truth * factor) for factor in found] for point, found in enumerate(draws)}
        answer = confirmed_steps(confirmed_study(steps, seeds), GOAL)
        assert answer is not None
        known = [step for step in answer.replicate_steps if step is not None]
        is_given = answer.interval != NO_INTERVAL
        intervals.append(answer.interval if is_given else Interval(min(known), max(known)))
    return {
        "seeds": seeds,
        "points": points,
        "given": "yes" if is_given else "no: the widest there could be",
        "coverage": float(np.mean([holds(interval, truth) for interval in intervals])),
        "width": median([width(interval) for interval in intervals]),
    }


def measure_critical_batch(studies: int, designs: Sequence[Design] = DESIGNS) -> list[dict[str, Any]]:
    return [_critical_row(design, studies) for design in designs]


def _critical_row(design: Design, studies: int) -> dict[str, Any]:
    rng, grid = np.random.default_rng(0), Grid(design.growth, design.every)
    fits = [fit for _ in range(studies) if (fit := fit_critical_batch(make_rows(rng, design.drawn(rng), grid)))]
    values = [fit.e_min / fit.s_min for fit in fits]
    return {
        "design": design.name,
        "studies": len(fits),
        "coverage": float(np.mean([holds(fit.b_crit_ci, design.b_crit) for fit in fits])),
        "width": median([width(fit.b_crit_ci) for fit in fits]),
        "open": float(np.mean([fit.b_crit_ci.is_open for fit in fits])),
        "bias": float(np.median(values)) / design.b_crit - 1,
    }


TRUTHS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "hyperbola": lambda sizes: 1 + B_CRIT / sizes,
    "knee": lambda sizes: np.maximum(1, B_CRIT / sizes),
    "soft": lambda sizes: 1 + (B_CRIT / sizes) ** 0.7,
}


def true_ends(curve: Callable[[np.ndarray], np.ndarray]) -> tuple[float, float]:
    """Return where efficiency falls to 0.8 and where steps exceed the fewest by 25 %, within the batch sizes."""
    sizes = np.exp(np.linspace(0, math.log(THIRTEEN[-1]), 100_001))
    steps = curve(sizes)
    perfect = sizes[np.searchsorted(sizes * steps, sizes[0] * steps[0] / 0.8)]
    return float(perfect), float(sizes[np.argmax(steps <= 1.25 * steps[-1])])


def measure_regimes(studies: int, noise: float = SEED_NOISE) -> list[dict[str, Any]]:
    return [_regimes_row(name, studies, noise) for name in TRUTHS]


def _regimes_row(name: str, studies: int, noise: float) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    sizes = np.array(THIRTEEN, dtype=float)
    ends = true_ends(TRUTHS[name])
    errors: dict[str, list[list[float]]] = {"fit": [], "shape": [], "rule": []}
    shapes, covered, opened = 0, [], []
    for _ in range(studies):
        steps = np.round(1e6 * TRUTHS[name](sizes) * np.exp(noise * rng.standard_normal(len(sizes)))).astype(int)
        rows = [plain_row(size, [int(step)] * 8, 8, int(1e9)) for size, step in zip(THIRTEEN, steps, strict=True)]
        regimes = find_regimes(rows, fit_critical_batch(rows))
        assert regimes is not None
        b_crit, shape = fit_hyperbola(sizes, steps).b_crit, fit_shape(sizes, steps)
        errors["fit"].append(octaves((b_crit / 4, 4 * b_crit), ends))
        errors["shape"].append(octaves((shape.end_of_perfect(), shape.start_of_maximal()), ends))
        found = (regimes.perfect_up_to, regimes.maximal_from)
        errors["rule"].append(errors[regimes.source][-1])
        shapes += regimes.source == "shape"
        # The fit speaks of the whole hyperbola, the shape of what the batch sizes show of it.
        truths = (B_CRIT / 4, 4 * B_CRIT) if name == "hyperbola" and regimes.source == "fit" else ends
        opened.append([end.low is None or end.high is None for end in found])
        covered.append([holds(Interval(end.low, end.high), truth) for end, truth in zip(found, truths, strict=True)])
    roots = {key: np.sqrt(np.mean(np.square(value), axis=0)).tolist() for key, value in errors.items()}
    return {
        "truth": name,
        **roots,
        "shape_chosen": shapes / studies,
        "coverage": np.mean(covered, axis=0).tolist(),
        "open": np.mean(opened, axis=0).tolist(),
    }


def measure_knees(studies: int) -> list[dict[str, Any]]:
    """Return how the ranges cover that are read off the shape of a knee, on grids that are as coarse as its plateau."""
    designs = [
        Knee("", TWELVE, 32, 1.5, 1.0, is_confirmed=confirmed, b_crit=64, every=10, coarse_s_min=s_mins)
        for s_mins in ((15, 60), (140, 300))
        for confirmed in (False, True)
    ]
    return [_knee_row(design, studies) for design in designs]


@dataclass(frozen=True)
class Knee(Design):
    """Studies whose true curve is a knee."""

    def true_steps(self, batch_size: float) -> float:
        return self.s_min * max(1, self.b_crit / batch_size)


def _knee_row(design: Knee, studies: int) -> dict[str, Any]:
    rng, grid, first = np.random.default_rng(0), Grid(design.growth, design.every), design.batch_sizes[0]
    # Perfect scaling loses a fifth of the examples at 1.25 B_crit, and steps lie a quarter above the plateau at 0.8.
    truths = (1.25 * design.b_crit, design.b_crit / 1.25)
    ends, efficiencies, shapes = [], [], 0
    for _ in range(studies):
        rows = make_rows(rng, design.drawn(rng), grid)
        regimes = find_regimes(rows, fit_critical_batch(rows))
        assert regimes is not None
        if regimes.source == "fit":
            continue
        shapes += 1
        found = (regimes.perfect_up_to, regimes.maximal_from)
        ends.append([holds(Interval(end.low, end.high), truth) for end, truth in zip(found, truths, strict=True)])
        for size, each in zip(design.batch_sizes, regimes.efficiencies, strict=True):
            if each is not None and size > first:
                efficiencies.append(holds(Interval(each.low, each.high), min(1, design.b_crit / size)))
    return {
        "S_min": "{} to {}".format(*design.coarse_s_min),
        "answers": "confirmed" if design.is_confirmed else "minima",
        "shape_chosen": shapes / studies,
        "coverage": [*np.mean(ends, axis=0).tolist(), float(np.mean(efficiencies))],
    }


def octaves(found: Sequence[float | None], ends: tuple[float, float]) -> list[float]:
    """Return the errors in doublings; an end that was not seen is taken at the batch size farthest that way."""
    unseen = (THIRTEEN[-1], THIRTEEN[0])
    pairs = zip(found, unseen, ends, strict=True)
    return [math.log2((value or nothing) / truth) for value, nothing, truth in pairs]


def tabulate(rows: Sequence[dict[str, Any]]) -> str:
    """Return the rows as a Markdown table."""
    lines = [list(rows[0]), ["---"] * len(rows[0]), *[[_cell(value) for value in row.values()] for row in rows]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_cell(one) for one in value)
    return f"{value:.3f}" if isinstance(value, float) else "open" if value is None else str(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=2000, help="made studies for each row")
    parser.add_argument("--part", action="append", metavar="PART", help="measure this part alone; may be repeated")
    parser.add_argument("--json", type=Path, help="write the numbers here as well; parts not measured stay as they are")
    options = parser.parse_args()
    parts: dict[str, Callable[[], list[dict[str, Any]]]] = {
        "best of m": lambda: measure_best_of(options.studies),
        "confirmed": lambda: measure_confirmed(options.studies),
        "critical batch size": lambda: measure_critical_batch(options.studies),
        "regimes": lambda: measure_regimes(max(200, options.studies // 5)),
        "regimes of a knee": lambda: measure_knees(max(200, options.studies // 5)),
    }
    wanted = options.part or list(parts)
    if unknown := set(wanted) - set(parts):
        parser.error(f"there is no part {', '.join(sorted(unknown))}; the parts are {', '.join(parts)}")
    found = {}
    for name in wanted:
        found[name] = parts[name]()
        print(f"\n## {name}\n\n{tabulate(found[name])}", flush=True)
    if options.json:
        before = json.loads(options.json.read_text("utf-8")) if options.part and options.json.exists() else {}
        options.json.write_text(json.dumps({**before, "studies": options.studies, **found}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
