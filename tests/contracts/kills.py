"""Workers killed while a sweep is run, by chance: shared by the tests of every executor."""

from __future__ import annotations

import multiprocessing
import os
import signal

from batchlab.errors import TrialError
from batchlab.run.displays import SilentDisplay
from batchlab.run.run_sweep import run_sweep
from batchlab.store.lab import Lab

NAME = "batchlab worker"

FIFTY = {
    "sweep.batch_sizes": [8, 64, 256],
    "sweep.trials": 16,
    "sweep.protocol": "full",
    "sweep.evaluate": {"growth": 1.1},
    "engine": {"pack_size": 8, "checkpoint_seconds": 1},
}
"""Changes of the digits that take minutes to train, so that most kills fall between two checkpoints."""


def workers():
    """Return the worker processes of this one."""
    return [process for process in multiprocessing.active_children() if process.name == NAME]


class Killer(SilentDisplay):
    """Kills a worker, whichever it is, now and then when the run has got on: luck decides, and no clock."""

    def __init__(self, chance, most, share=0.5):
        self.kills, self.said = 0, []
        self.most, self._chance, self._share, self._seen = most, chance, share, None

    def alive(self):
        """Return the numbers of the processes that may be killed."""
        return [worker.pid for worker in workers()]

    def show(self, studies, num_workers):
        seen = [(study.step, study.num_done) for study in studies]
        has_got_on, self._seen = seen != self._seen, seen
        alive = self.alive()
        if has_got_on and alive and self.kills < self.most and self._chance.random() < self._share:
            os.kill(self._chance.choice(alive), signal.SIGKILL)
            self.kills += 1

    def say(self, sentence):
        self.said.append(sentence)


def run_with_kills(sweep, folder, killer, num_workers=2, executor="local"):
    """Run a sweep to its end until all kills are done; return its labs.

    How often a run gets on, and so how many kills it sees, is the machine's: where one lab has seen too few, the sweep
    is run in another. Where too many workers died in a row it is run again in the same.
    """
    labs, num_ends = [], 0
    while killer.kills < killer.most:
        before, lab = killer.kills, folder / f"lab-{len(labs)}"
        num_ends += _run_to_its_end(sweep, lab, killer, num_workers, executor)
        assert killer.kills > before, "nobody was killed"
        labs.append(lab)
    print(f"{killer.kills} kills in {len(labs)} labs, {num_ends} times three in a row")
    return labs


def _run_to_its_end(sweep, lab, killer, num_workers, executor):
    """Run a sweep, again where too many workers died in a row; return how often that was."""
    for num_ends in range(100):
        try:
            run_sweep(sweep, lab, num_workers=num_workers, executor=executor, display=killer)
            return num_ends
        except TrialError as error:
            if "died 3 times in a row" not in str(error):
                raise
    raise AssertionError("the run makes no progress")


def tables(lab, sweep):
    """Return the bytes of all measurements."""
    store = Lab.open(lab)
    folders = [store.study_folder(sweep.name, size).folder for size in sweep.search.batch_sizes]
    return {folder.name: (folder / "measurements.parquet").read_bytes() for folder in folders}


def files(lab):
    """Return the paths of all files of its studies."""
    return sorted(str(path.relative_to(lab)) for path in lab.glob("sweeps/*/*/*"))
