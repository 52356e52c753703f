"""Datasets that are read while a network trains: the order, the random numbers and the bits follow from the seeds."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import Dataset, IterableDataset, TensorDataset

import batchlab
from batchlab.engine.base import Point
from batchlab.engine.source import Split
from batchlab.errors import InputError, SpecError, TrainerError, TrialError
from batchlab.own import loaded
from batchlab.own.loaded import Loaded
from batchlab.own.python_file import load_own_sweep
from batchlab.processes import is_running
from batchlab.run.run_sweep import run_sweep
from tests.states import equal, trained

POINT = Point(3, {"learning_rate": 0.05, "beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-8, "weight_decay": 0.0})
LAST = 12


class Items(Dataset):
    def __init__(self, *columns):
        self.items = list(zip(*columns, strict=True))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


class Augmented(Items):
    """Disturbed by all three generators that augmentations draw from."""

    def __getitem__(self, index):
        inputs, label = self.items[index]
        return inputs + random.gauss(0, 0.1) + 0.1 * np.random.randn() + 0.1 * torch.randn(()), label  # noqa: NPY002


class Dropping(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(2, 8), nn.Dropout(0.3), nn.ReLU(), nn.Linear(8, 2))


def examples(count=60, seed=0):
    points = torch.randn(count, 2, generator=torch.Generator().manual_seed(seed))
    return points, (points.prod(1) > 0).long()


def program_of(own, batch_size=16, state=None, point=POINT):
    return own.trainer.program(own.spec.study(batch_size), [point], state)


def test_tensors_stay_in_memory_and_a_dataset_is_read(make_own):
    inputs, labels = examples()
    own = make_own(train=Items(inputs, labels), val=TensorDataset(inputs, labels), test=(inputs.numpy(), labels))

    kinds = {name: type(each) for name, each in own.trainer._examples.items()}

    assert kinds == {"train": Loaded, "val": Split, "test": Split}


@pytest.mark.parametrize("loaders", [0, 1, 2])
@pytest.mark.parametrize("microbatch_size", [None, 5])
def test_a_dataset_trains_to_the_bits_of_the_tensors_that_it_holds(make_own, loaders, microbatch_size):
    """Over several epochs, with dropout: the random numbers of the training are left alone by the reading."""
    pair, keywords = examples(), {"model": Dropping, "engine": {"microbatch_size": microbatch_size}}
    keywords = keywords if microbatch_size else {"model": Dropping}
    held, read = (
        make_own(train=pair, **keywords),
        make_own(train=Items(*pair), val=Items(*pair), loaders=loaders, **keywords),
    )

    first, second = program_of(held), program_of(read)

    assert equal(trained(first, LAST), trained(second, LAST))
    assert program_of(make_own(val=pair, **keywords)).evaluate() == program_of(read).evaluate()


@pytest.mark.parametrize("loaders", [0, 2])
def test_it_goes_on_from_any_step_with_equal_bits(make_own, loaders):
    own = make_own(model=Dropping, train=Augmented(*examples()), loaders=loaders)
    whole, state = trained(program_of(own), LAST), None

    for step in range(1, LAST + 1):
        torch.manual_seed(step)
        state = trained(program_of(own, state=state), step)

    assert equal(state, whole)


def test_what_an_augmentation_draws_follows_from_seed_trial_and_position(make_own):
    own = make_own(train=Augmented(*examples()), loaders=2)

    first, again = (
        trained(program_of(own), LAST),
        trained(program_of(make_own(train=Augmented(*examples()), loaders=0)), LAST),
    )
    plain = trained(program_of(make_own(train=Items(*examples()))), LAST)
    other = program_of(own, point=Point(4, POINT.metaparameters))

    assert equal(first, again)
    assert not np.array_equal(first["parameters"], plain["parameters"])
    drawn = [each._batches.ahead(each._clock, [16])[0].cut(16)[0].inputs for each in (program_of(own), other)]
    assert not set(drawn[0].flatten().tolist()) & set(drawn[1].flatten().tolist())


def test_an_example_is_disturbed_alike_in_batches_of_any_size(make_own):
    """Positions are counted over epochs: another look at the same example is disturbed otherwise."""
    own = make_own(train=Augmented(*examples(32)), loaders=0)
    small, large = (program_of(own, size)._batches.ahead(program_of(own)._clock, [size] * 40) for size in (4, 16))

    first = torch.cat([batch.cut(4)[0].inputs[0] for batch in small[:16]])

    assert torch.equal(first, torch.cat([part.inputs[0] for batch in large[:4] for part in batch.cut(7)]))
    assert len(set(first[:, 0].tolist())) == 64


def test_reading_leaves_the_random_numbers_of_the_caller_alone(make_own):
    own = make_own(train=Augmented(*examples()), val=Augmented(*examples()), loaders=0)
    assert own.spec  # which makes a model to learn its name
    before = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state()  # noqa: NPY002

    program = program_of(own)
    trained(program, 3)
    program.evaluate()

    assert random.getstate() == before[0]
    assert np.random.get_state()[1].tolist() == before[1]  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), before[2])


@pytest.mark.parametrize("held_bytes", [0, 1 << 20])
def test_an_evaluated_split_is_read_once_where_it_is_small(make_own, monkeypatch, held_bytes):
    reads, val = [], Augmented(*examples(50, seed=1))

    class Watched(Augmented):
        def __getitem__(self, index):
            reads.append(index)
            return super().__getitem__(index)

    monkeypatch.setattr(loaded, "HELD_BYTES", held_bytes)
    own = make_own(val=Watched(*examples(50, seed=1)), loaders=0)
    first = program_of(own).evaluate()
    count = len(reads)

    assert program_of(own).evaluate() == first == program_of(make_own(val=val)).evaluate()
    assert sorted(set(reads)) == list(range(50))
    assert (len(reads) == count) == bool(held_bytes)


def test_training_metrics_are_of_as_many_examples_as_validation_has(make_own):
    keywords = {"evaluate": {"every": 4, "splits": ["train", "val"]}}

    held = program_of(make_own(train=examples(60), **keywords)).evaluate()

    assert program_of(make_own(train=Items(*examples(60)), **keywords)).evaluate() == held


def test_collate_makes_batches_of_items_of_unequal_shapes(make_own):
    rows = [torch.randn(length) for length in (1, 2, 3) * 20]
    labels = [int(row.sum() > 0) for row in rows]

    def collate(items):
        padded = nn.utils.rnn.pad_sequence([row for row, _ in items], batch_first=True)
        return nn.functional.pad(padded, (0, 3 - padded.shape[1])), torch.tensor([label for _, label in items])

    def model():
        return nn.Linear(3, 2)

    pair = nn.utils.rnn.pad_sequence(rows, batch_first=True), torch.tensor(labels)
    read = program_of(make_own(model=model, train=Items(rows, labels), val=Items(rows, labels), collate=collate))
    held = program_of(make_own(model=model, train=pair, val=pair))

    assert equal(trained(read, LAST), trained(held, LAST))
    assert read.evaluate() == held.evaluate()


UNEQUAL = Items([torch.ones(2), torch.ones(3)] * 10, [0, 1] * 10)


class Failing(Items):
    def __getitem__(self, index):
        if index == 7:
            raise OSError("image 7 is\nbroken")
        return super().__getitem__(index)


class Endless(IterableDataset):
    def __iter__(self):
        return iter(())

    def __len__(self):
        return 3


@pytest.mark.parametrize(
    ("changes", "error", "sentence"),
    [
        ({"train": UNEQUAL}, TrainerError, "train has items that do not make a batch (stack expects each tensor to be"),
        ({"train": UNEQUAL}, TrainerError, "): give `collate`, a function from a list of items to a batch, as torch's"),
        (
            {"val": UNEQUAL, "collate": lambda items: 1 / 0},
            TrainerError,
            "collate fails for 4 items of val: ZeroDivision",
        ),
        (
            {"train": Items([{"a": torch.ones(2)}] * 4, [0] * 4)},
            TrainerError,
            "train: a batch is a list of 2, not a pair",
        ),
        ({"train": Items(*[torch.ones(4, 2)] * 3)}, TrainerError, "a batch is a list of 3, not a pair of tensors"),
        ({"train": [{"a": 1}] * 4}, TrainerError, "train: a batch is a dict, not a pair of tensors, inputs and labels"),
        (
            {"train": UNEQUAL, "collate": lambda items: (torch.ones(3, 2), torch.ones(4))},
            TrainerError,
            "train: a batch of 4 items has inputs (3, 2) and labels (4,): give 4 of each",
        ),
        ({"train": Items([], [])}, TrainerError, "train has no examples"),
        (
            {"train": Endless()},
            TrainerError,
            "train is Endless: give a pair of tensors, inputs and labels, or a Dataset",
        ),
        ({"collate": list}, InputError, "`collate` makes batches of a Dataset's items, and there are only tensors"),
        ({"collate": 3}, InputError, "`collate` is no function"),
        ({"loaders": -1}, InputError, "loaders = -1: give a number of processes, 0 or more"),
        (
            {"train": Items(*examples()), "engine": {"pack_size": 2}},
            SpecError,
            'engine.pack_size = 2: trials on a Dataset that is read train one by one; use 1 or "auto"',
        ),
    ],
)
def test_what_is_wrong_is_one_sentence(make_own, changes, error, sentence):
    with pytest.raises(error) as caught:
        own = make_own(**changes)
        own.trainer.check(own.spec.study(4))

    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("loaders", [0, 1])
def test_an_item_that_cannot_be_read_is_one_sentence(make_own, loaders):
    program = program_of(make_own(train=Failing(*examples()), loaders=loaders))

    with pytest.raises(TrainerError) as caught:
        trained(program, 4)

    assert "train[7] cannot be read: OSError: image 7 is\\nbroken (line " in str(caught.value)
    assert "\n" not in str(caught.value)


def test_shapes_that_differ_later_on_are_told_too(make_own):
    inputs = [torch.ones(2)] * 40 + [torch.ones(3)] * 20

    with pytest.raises(TrainerError, match="give `collate`"):
        trained(program_of(make_own(train=Items(inputs, [0] * 60))), 4)


def test_outputs_that_cannot_be_joined_are_told(make_own):
    rows = [torch.zeros(length) for length in [1] * 300 + [2] * 300]

    def collate(items):
        inputs = nn.utils.rnn.pad_sequence([row for row, _ in items], batch_first=True)
        return inputs, torch.tensor([label for _, label in items])

    own = make_own(
        model=lambda: nn.Linear(1, 1),
        train=Items(rows, [0] * 600),
        val=Items(rows, [0] * 600),
        collate=collate,
        loss=lambda outputs, labels: outputs.mean(),
        metrics=None,
        goal="val/loss < 0",
    )
    own.trainer._make_network = lambda: nn.Sequential(nn.Unflatten(1, (-1, 1)), nn.Linear(1, 1))

    with pytest.raises(TrainerError, match=r"have different shapes, .*: let `collate` make all batches of one shape"):
        program_of(own).evaluate()


def loading_processes():
    return {process.pid for process in multiprocessing.active_children()}


def test_loading_processes_end_with_their_program(make_own):
    before = loading_processes()
    program = program_of(make_own(train=Items(*examples()), loaders=2))
    program.advance(1)
    started = loading_processes() - before

    del program

    assert len(started) == 2
    assert not loading_processes() & started


def test_a_trial_that_diverges_needs_no_loading_processes_any_more(make_own):
    before = loading_processes()
    own = make_own(optimizer="sgd", search_space={"learning_rate": [1e30]}, train=Items(*examples()))
    program = program_of(own, point=Point(0, {"learning_rate": 1e30}))

    while len(program.trial_ids):
        program.advance(50)

    assert program.diverged
    assert loading_processes() == before


def test_a_loading_process_that_is_killed_is_told(make_own):
    before = loading_processes()
    program = program_of(make_own(train=Items(*examples()), loaders=1))
    program.advance(1)
    (process,) = loading_processes() - before

    os.kill(process, signal.SIGKILL)

    with pytest.raises(TrialError, match="A loading process ended unexpectedly"):
        trained(program, 50)


def test_a_process_ends_though_a_program_of_it_still_reads(tmp_path):
    code = (
        FILE
        + """
import batchlab
from batchlab.engine.base import Point
sweep.file, study = None, sweep.spec.study(8)
program = sweep.trainer.program(study, [Point(0, study.metaparameters({"learning_rate": 0.02}))])
program.advance(1)
kept = sys.modules["kept"] = program  # until after everything else
"""
    )
    (tmp_path / "ends.py").write_text(f"import sys{code}")
    source = str(Path(batchlab.__file__).resolve().parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([source, *filter(None, sys.path)])}

    done = subprocess.run([sys.executable, "ends.py"], cwd=tmp_path, env=environment, check=False, timeout=120)

    assert done.returncode == 0


FILE = """
import os
import torch
from torch import nn
import batchlab

class Moons(torch.utils.data.Dataset):
    def __init__(self, count, seed):
        self.points = torch.randn(count, 2, generator=torch.Generator().manual_seed(seed))
    def __len__(self):
        return len(self.points)
    def __getitem__(self, index):
        with open("loaders.txt", "a") as file:
            print(os.getpid(), os.getppid(), file=file)
        return self.points[index] + 0.01 * torch.randn(2), int(self.points[index].prod() > 0)

sweep = batchlab.TorchSweep(
    name="read", model=lambda: nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2)), loaders=2,
    train=Moons(100, 0), val=Moons(30, 1), loss=nn.functional.cross_entropy,
    metrics={"error": lambda outputs, labels: (outputs.argmax(1) != labels).float().mean()},
    optimizer="adamw", batch_sizes=[8], goal="val/error < 0.01", trials=2, max_steps=40,
    search_space={"learning_rate": [0.02]})
"""


@pytest.mark.slow
def test_workers_have_loading_processes_of_their_own(tmp_path, monkeypatch):
    """Workers are daemonic, and may have children all the same; none is left."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "read.py").write_text(FILE)

    summary = run_sweep(load_own_sweep(tmp_path / "read.py"), tmp_path / "lab", num_workers=1)

    assert [row.complete for row in summary.rows] == [2]
    told = {tuple(map(int, line.split())) for line in (tmp_path / "loaders.txt").read_text().splitlines()}
    loaders = {process for process, parent in told if parent not in (os.getpid(), os.getppid())}
    assert len(loaders) >= 2
    deadline = time.monotonic() + 10
    while any(map(is_running, loaders)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_running, loaders))


@pytest.mark.parametrize("loaders", [0, 2])
@pytest.mark.parametrize("is_stepped", [False, True])
def test_batches_of_growing_size_are_read_as_they_are_gathered(make_own, loaders, is_stepped):
    """Stopped in the middle of a stage as well: then the reading begins anew."""
    stairs = {"stage_factor": 2, "stage_length": 40, "stage_limit": 60}
    pair, keywords = examples(), {"schedule": {"name": "staircase", "of": "batch_size", **stairs}, "batch_sizes": [4]}
    point = Point(3, {**POINT.metaparameters, **stairs})
    held, read = make_own(train=pair, **keywords), make_own(train=Items(*pair), loaders=loaders, **keywords)
    if is_stepped:
        keywords |= {"loss": ..., "metrics": ..., "goal": "val/loss < 0.1", "training_step": mean_loss}
        read = make_own(train=Items(*pair), val=Items(*pair), loaders=loaders, **keywords)
    first, second = trained(program_of(held, 4, point=point), 25), trained(program_of(read, 4, point=point), 11)

    second = trained(program_of(read, 4, second, point), 25)

    assert equal(first, second)
    assert int(first["examples"]) > 25 * 16


def mean_loss(module, batch):
    inputs, labels = batch
    return nn.functional.cross_entropy(module(inputs), labels)
