"""Whether a sweep names what there is and asks for what can be done: checked before anything is run."""

from __future__ import annotations

from batchlab.core.study import Study
from batchlab.core.sweep import Sweep
from batchlab.core.workload import OwnLoop
from batchlab.data import registry as data
from batchlab.engine.checks.study import LABEL_SMOOTHING, check_network
from batchlab.engine.quadratic import OPTIONAL, QuadraticTrainer
from batchlab.errors import SpecError, shown, unknown_name
from batchlab.loops.command import check_command
from batchlab.optim.unit_check import check_units
from batchlab.search.samplers import check_points


def check_sweep(sweep: Sweep) -> None:
    """Raise SpecError where the sweep names something unknown or asks for the impossible.

    That is what the trainer of its workload will check; here it is known before any data is read.
    """
    for study in reversed(sweep.studies()):  # of several batches that are too large, the largest is named
        if isinstance(study.workload, OwnLoop):
            check_loop(study.workload, study)
            continue
        _check_splits(study)
        if study.workload.is_closed_form:
            check_units(study, OPTIONAL.values())
            QuadraticTrainer().check(study)
        else:
            check_units(study, [LABEL_SMOOTHING])
            check_network(study, data.facts(study.workload.dataset))
        check_points(study)


def check_loop(workload: OwnLoop, study: Study) -> None:
    """Check a study of a program of the user's own; a function of Python is not named by a spec."""
    if workload.command is None:
        raise SpecError(
            f"workload.loop = {shown(workload.loop)}: a spec names no code; run the file of Python that makes it."
        )
    check_command(workload, study)
    check_points(study)


def _check_splits(study: Study) -> None:
    known = data.facts(study.workload.dataset).splits
    for split in study.evaluation.splits:
        if split not in known:
            raise SpecError(unknown_name(f"split of {study.workload.dataset.name}", split, known))
