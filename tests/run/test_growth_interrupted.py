"""Studies that grow again before they are done: stopped anywhere, asked for more, they end as a fresh start would."""

from __future__ import annotations

import random

import pytest

from batchlab.core.confirmation import replicate_id
from batchlab.run.pack import Hooks, train_pack
from batchlab.run.study_run import StudyRun
from batchlab.store.study_folder import StudyFolder

SMALLEST = {"trials": 1, "max_attempts": 1, "race_factor": 1.0, "max_steps": 45, "protocol": "race", "confirm": None}


def larger(chance, least):
    """Return a search that is at least as large as `least` in everything, what is confirmed included."""
    trials, confirm = least["trials"] + chance.randint(0, 4), least["confirm"]
    if confirm or chance.random() < 0.5:
        confirm = {name: (confirm or {}).get(name, 1) + chance.randint(0, 2) for name in ("seeds", "points")}
    return {
        "trials": trials,
        "max_attempts": max(trials, least["max_attempts"]) + chance.randint(0, 5),
        "race_factor": chance.choice([factor for factor in (1.0, 1.2, 1.5, 2.0) if factor >= least["race_factor"]]),
        "max_steps": least["max_steps"] + chance.choice([0, 0, 5, 30]),
        "protocol": "full" if least["protocol"] == "full" or chance.random() < 0.1 else "race",
        "confirm": confirm,
    }


def fates(chance):
    """Return where trials and replicates meet the goal and where they diverge."""
    numbers = [replicate_id(trial, replicate) for trial in range(40) for replicate in range(16)]
    goal_at = {number: chance.randint(0, 130) for number in numbers if chance.random() < 0.6}
    return goal_at, {number: chance.randint(1, 140) for number in numbers if chance.random() < 0.35}


def begin(chance, study, path, trainer, pack_size):
    """Train a few packs, of all points or of some only, with states kept or not, and throw the process away."""
    first = chance.randint(0, 8)
    only = range(first, first + chance.randint(1, 5)) if chance.random() < 0.3 else None
    run = StudyRun(study, StudyFolder(path), keep_states=chance.random() < 0.5, only=only)
    if run.is_done:
        return
    run.open_round() if run.pack_size else run.choose_pack_size(pack_size)
    for _ in range(chance.randint(0, 5)):
        if (named_task := run.take_task()) is None:
            return
        name, task = named_task
        hooks = Hooks(
            lambda end=task.end_step: end, lambda end: None, lambda *_: None, lambda: False, run.shelf(name).save
        )
        result = train_pack(trainer, task, hooks)
        run.put_back(name) if result is None else run.keep_part(name, result)


def confirmed(path):
    folder = StudyFolder(path)
    made = folder.confirmation()
    if made is None:
        return None
    rows = folder.replicates()
    replicates = [replicate.model_copy(update={"wall_seconds": None}) for replicate in made.replicates]
    return made.trial_ids, made.end_step, made.seeds, replicates, rows.trial_id.tolist(), rows.step.tolist()


@pytest.mark.parametrize("seed", [*range(8), 40, 70])
def test_what_grows_before_it_is_done_equals_a_fresh_start(make_scripted, scripted, tmp_path, fill, outcome_of, seed):
    chance = random.Random(seed)
    trainer, pack_size, size = scripted(*fates(chance)), chance.randint(1, 4), SMALLEST
    for _ in range(5):
        size = larger(chance, size)
        study = make_scripted({f"sweep.{name}": value for name, value in size.items() if value is not None}).study(8)
        for _ in range(chance.randint(0, 4)):
            begin(chance, study, tmp_path / "8", trainer, pack_size)

    fill(study, tmp_path / "8", trainer, pack_size, chance, restarts=0.3, keep_states=True)
    fill(study, tmp_path / "fresh", trainer, pack_size)

    assert outcome_of(tmp_path / "8") == outcome_of(tmp_path / "fresh")
    assert confirmed(tmp_path / "8") == confirmed(tmp_path / "fresh")
    assert not (tmp_path / "growing").exists() and not (tmp_path / "8" / "confirming").exists()
