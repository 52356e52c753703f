"""Going on from a checkpoint: the program as it was, once it is known that the trainer can go on from there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from batchlab.core.study import Study
from batchlab.engine.base import Point, Program, Trainer
from batchlab.engine.loop import Evaluated
from batchlab.errors import BatchlabError, shown
from batchlab.store.checkpoint import Checkpoint


class UnusableCheckpointError(BatchlabError):
    """A checkpoint that is as it was written, and that the trainer cannot go on from; it says why."""


def resumed_program(trainer: Trainer, study: Study, points: Sequence[Point], saved: Checkpoint) -> Program:
    """Return the program as a checkpoint left it; UnusableCheckpointError where the trainer cannot."""
    try:
        program = trainer.program(study, points, entries(saved, "program."))
        problem = _state_problem(program, study, points, saved)
    except BatchlabError:
        raise
    except Exception as error:
        trainer.program(study, points)  # where this fails as well, the checkpoint is not to blame
        problem = f"{type(error).__name__}: {error}"
    if problem is not None:
        raise UnusableCheckpointError(shown(problem))
    return program


def _state_problem(program: Program, study: Study, points: Sequence[Point], saved: Checkpoint) -> str | None:
    """Return what of a restored program is not as its checkpoint, or cannot be."""
    kinds = [
        {name: (array.dtype, array.shape) for name, array in state.items()}
        for state in (entries(saved, "program."), program.state())
    ]
    if "examples" not in kinds[0]:  # as in every checkpoint from before lab format 4
        kinds[1].pop("examples", None)
    if kinds[0] != kinds[1]:
        return "its arrays have other names, shapes or types than the trainer's"
    live, diverged = set(program.trial_ids.tolist()), program.diverged
    if live | set(diverged) != {point.trial_id for point in points}:
        return "it tells of other trials"
    last = int(saved["rows.step"].max())
    if not last <= program.step <= min(study.max_steps, study.evaluation.first_step_from(last + 1)):
        return f"it is at step {program.step}, and its last row at {last}"
    if not live <= set(saved["rows.trial_id"][saved["rows.step"] == last].tolist()):
        return f"a trial in training has no row of step {last}"
    if not all(0 < step <= program.step for step in diverged.values()):
        return "a trial diverged at a step that it has not trained to"
    return None


def check_columns(saved: Checkpoint, evaluated: Evaluated) -> None:
    """Raise UnusableCheckpointError where the rows of a checkpoint could not hold what the program measures."""
    for name, values in evaluated.metrics.items():
        held = saved.get(f"rows.{name}", values).dtype
        if np.result_type(held, values.dtype) != held:
            raise UnusableCheckpointError(f"{name} is {held}, and the program's is {values.dtype}")


def entries(saved: Checkpoint, prefix: str) -> dict[str, np.ndarray]:
    """Return the arrays of a checkpoint whose names begin alike, by the rest of their names."""
    return {name.removeprefix(prefix): array for name, array in saved.items() if name.startswith(prefix)}
