"""batchlab run --dry-run: what a sweep may cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from batchlab.cli.options import print_json, print_table, tell, warn
from batchlab.processes import usable_cores

if TYPE_CHECKING:
    from batchlab.core.sweep import Sweep
    from batchlab.engine.base import Trainer
    from batchlab.run.estimate import Source, StudyEstimate

CONFIRMED = "Trials + runs that confirm the best points with fresh seeds."
_HEADER = [
    "batch size",
    "trials",
    "points",
    "max steps",
    "us/trial-step",
    "expected steps",
    "expected (one core)",
    "at most (one core)",
    "first point",
]
_GUESSES: dict[Source, str] = {
    "pilot": "the nearest batch size where one did",
    "lab": "the nearest batch size that is finished in the lab",
    "published": "the published steps, the best of many trials",
}


def print_dry_run(
    sweep: Sweep,
    lab: Path,
    data: Path | None,
    workers: int | None,
    as_json: bool = False,
    trainer: Trainer | None = None,
) -> None:
    """Print each study that is not finished with its cost; say on stderr how far the measurements are."""
    from batchlab.analysis.text import listed
    from batchlab.optim.registry import with_defaults
    from batchlab.run.finished import as_stored, begun_batch_sizes

    sweep, finished = as_stored(sweep if trainer else with_defaults(sweep), lab)
    if finished and not as_json:
        warn(_what_is_finished(sweep, tuple(finished), lab))
    begun = tuple(size for size in begun_batch_sizes(sweep, lab) if size not in finished)
    if begun and not as_json:
        warn(f"begun in {lab} and counted whole, what is trained already included: batch size {listed(begun)}")
    if tuple(finished) == sweep.search.batch_sizes and not as_json:
        return
    if sweep.workload.is_own_loop:
        _print_loop(sweep, tuple(finished), workers, as_json)
        return
    from batchlab.published.comparison import counterpart_steps
    from batchlab.run.estimate import estimate_sweep

    studies = estimate_sweep(sweep, data, tell, trainer, finished, counterpart_steps(sweep))
    num_workers = workers or usable_cores()
    if as_json:
        print_json(_facts(sweep, tuple(finished), num_workers) | {"studies": [asdict(study) for study in studies]})
        return
    goal, protocol = sweep.search.hardest_goal, sweep.search.protocol
    print(f"Sweep {sweep.name}: {sweep.workload.name}, goal {goal}, {protocol} protocol")
    print_table(_HEADER, [_cells(study) for study in studies])
    print(*_sentences(sweep, studies, num_workers), sep="\n")


def _what_is_finished(sweep: Sweep, finished: tuple[int, ...], lab: Path) -> str:
    from batchlab.analysis.text import listed

    if finished == sweep.search.batch_sizes:
        return f'sweep "{sweep.name}" is finished in {lab} as it is asked for: nothing would be trained'
    return f"finished in {lab} and left out: batch size {listed(finished)}"


def _facts(sweep: Sweep, finished: tuple[int, ...], num_workers: int) -> dict[str, Any]:
    facts = {"sweep": sweep.name, "workload": sweep.workload.name, "workers": num_workers}
    return facts | {"protocol": sweep.search.protocol, "finished": finished}


def _print_loop(sweep: Sweep, finished: tuple[int, ...], workers: int | None, as_json: bool) -> None:
    """Print the studies of a loop of the user's own, of which nothing is run: what it costs is not known."""
    from batchlab.run.executors.choose import default_workers
    from batchlab.search.samplers import draw_points

    num_workers = workers or default_workers(sweep)
    left = [study for study in sweep.studies() if study.batch_size not in finished]
    studies = [
        {
            "batch_size": study.batch_size,
            "trials": study.trials,
            "replicates": study.num_replicates,
            "attempts": study.num_points,
            "max_steps": study.max_steps,
            "first_point": draw_points(study)[0],
        }
        for study in left
    ]
    if as_json:
        print_json(_facts(sweep, finished, num_workers) | {"studies": studies})
        return
    print(f"Sweep {sweep.name}: goal {sweep.search.hardest_goal}, {sweep.search.protocol} protocol")
    columns = [0, 1, 2, 3, -1]
    print_table([_HEADER[i] for i in columns], [_loop_cells(study) for study in studies])
    steps = sum((study.trials + study.num_replicates) * study.max_steps for study in left)
    if any(study.num_replicates for study in left):
        print(CONFIRMED)
    print(
        f"At most {steps:,} steps, if no trial diverges, {num_workers} trials at once. "
        "How long a step takes, only your own loop knows: nothing was run."
    )


def _loop_cells(study: dict[str, Any]) -> list[str]:
    return [
        f"{study['batch_size']:,}",
        f"{study['trials']} + {study['replicates']}" if study["replicates"] else f"{study['trials']}",
        f"{study['attempts']}",
        f"{study['max_steps']:,}",
        _point(study["first_point"]),
    ]


def _point(point: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.3g}" for name, value in point.items())


def _cells(study: StudyEstimate) -> list[str]:
    from batchlab.core.duration import spell_seconds

    return [
        f"{study.batch_size:,}",
        f"{study.trials} + {study.replicates}" if study.replicates else f"{study.trials}",
        f"{study.attempts}",
        f"{study.max_steps:,}",
        f"{1e6 * study.seconds_per_trial_step:,.0f}",
        "?" if study.expected_steps is None else f"{study.expected_steps:,}" + ("*" if study.expected_from else ""),
        "?" if study.expected_seconds is None else spell_seconds(study.expected_seconds),
        spell_seconds(study.max_seconds),
        _point(study.first_point),
    ]


def _sentences(sweep: Sweep, studies: list[StudyEstimate], num_workers: int) -> list[str]:
    """Return what the table comes to; the race is spoken of where there is one."""
    from batchlab.analysis.text import met_untrained
    from batchlab.core.duration import spell_seconds

    workers = "1 worker" if num_workers == 1 else f"{num_workers:,} workers"
    most = spell_seconds(sum(study.max_seconds for study in studies) / num_workers)
    expected = spell_seconds(sum(study.expected_seconds or 0.0 for study in studies) / num_workers)
    lines = [CONFIRMED] if any(study.replicates for study in studies) else []
    if untrained := [study.batch_size for study in studies if study.pilot.goal_steps == 0]:
        lines.append(f"Note: {met_untrained(untrained, sweep.search.hardest_goal)}")
    if sweep.search.protocol == "full":
        training = f"About {expected} with {workers}: every trial trains to its budget."
        return [*lines, f"{training} Nothing was stored."]
    guesses = [_GUESSES[source] for source in _GUESSES if any(_guess(study) == source for study in studies)]
    if guesses:
        lines.append(f"* No trial of the pilot met the goal here: guessed from {' or '.join(guesses)}.")
    if any(study.expected_seconds is None for study in studies):
        bound = f"at most {most} with {workers}, if none diverges"
        return [*lines, f"No trial of the pilot met the goal: no time can be expected, {bound}. Nothing was stored."]
    return [
        *lines,
        f"About {expected} expected with {workers}, going by {_grounds(studies)}; "
        f"at most {most}, if no trial met the goal and none diverged. Nothing was stored.",
    ]


def _grounds(studies: list[StudyEstimate]) -> str:
    """Return by what the steps of all studies are expected."""
    grounds: dict[Source, str] = {
        "pilot": f"a pilot of up to {max(study.pilot.trials for study in studies)} trials",
        "lab": "what is finished in the lab",
        "published": "published steps",
    }
    return " and ".join(grounds[source] for source in grounds if any(each.expected_by == source for each in studies))


def _guess(study: StudyEstimate) -> Source | None:
    return study.expected_by if study.expected_from else None
