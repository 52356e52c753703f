"""One GPU for each worker: who gets which, and what workers are told of it."""

from __future__ import annotations

import os
import sys
from contextlib import closing
from dataclasses import dataclass
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchlab.core.study import Study
from batchlab.engine.quadratic import QuadraticTrainer
from batchlab.errors import InputError
from batchlab.run.do_errand import do_errand
from batchlab.run.executors import gpus
from batchlab.run.executors.gpus import choose_gpus, count_workers, find_gpus, gpu_variables
from batchlab.run.executors.local import LocalExecutor
from batchlab.run.run_sweep import run_sweep


@given(st.lists(st.text("0123456789", min_size=1), max_size=8, unique=True), st.data())
def test_no_two_workers_share_a_gpu(visible, data):
    wanted = data.draw(st.none() | st.integers(0, len(visible)))
    chosen = choose_gpus("auto", visible, wanted)
    workers = data.draw(st.none() | st.integers(1, len(chosen or "x" * 8)))

    count = count_workers(chosen, workers, default=4)
    told = [gpu_variables(chosen, number) for number in range(count)]

    if chosen:
        names = [each["CUDA_VISIBLE_DEVICES"] for each in told]
        assert len(set(names)) == count <= len(chosen)
        assert set(names) <= set(visible)
    else:
        assert all(each in ({}, {"CUDA_VISIBLE_DEVICES": ""}) for each in told)
        assert count == (workers or 4)


@pytest.mark.parametrize(
    ("device", "visible", "wanted", "said"),
    [
        ("auto", ["0", "1"], 3, "3 GPUs: there are 2 here"),
        ("auto", [], 1, "1 GPU: there are 0 here"),
        ("cuda:1", ["0", "1"], 2, '2 GPUs: engine.device = "cuda:1" is where all workers train'),
        ("cpu", ["0", "1"], 1, '1 GPU: engine.device = "cpu"'),
        ("cuda", ["0"], 0, '0 GPUs: engine.device = "cuda" needs one'),
    ],
)
def test_what_cannot_be_is_refused(device, visible, wanted, said):
    with pytest.raises(InputError, match=said):
        choose_gpus(device, visible, wanted)


def test_more_workers_than_gpus_are_refused():
    with pytest.raises(InputError, match="4 workers: each has a GPU of its own, and there are 2. Use 2"):
        count_workers(("0", "1"), 4, default=8)


def test_a_device_that_is_named_is_used_by_all(make_digits):
    assert choose_gpus("cuda:1", ["0", "1"], None) is None
    assert gpu_variables(None, 1) == {}


def test_gpus_that_the_system_has_hidden_are_not_handed_out(make_digits, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5,GPU-abc")
    monkeypatch.setitem(sys.modules, "torch", sys)
    monkeypatch.setattr(gpus, "count_gpus", lambda: 3)

    assert find_gpus(make_digits(), 2) == ("3", "5")
    assert find_gpus(make_digits(), None) == ("3", "5", "GPU-abc")


def test_gpus_that_are_named_and_not_there_neither_limit_the_workers_nor_are_handed_out(make_digits, monkeypatch):
    """As a scheduler's variable on a machine whose PyTorch computes on processors alone."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    monkeypatch.setitem(sys.modules, "torch", sys)
    monkeypatch.setattr(gpus, "count_gpus", lambda: 0)

    assert find_gpus(make_digits(), None) is None
    with pytest.raises(InputError, match="1 GPU: there are 0 here"):
        find_gpus(make_digits(), 1)


def test_gpus_for_what_trains_on_none_are_refused(make_nqm, tmp_path):
    with pytest.raises(InputError, match="1 GPU: nothing is trained on one here"):
        run_sweep(make_nqm(), tmp_path / "lab", num_gpus=1)

    assert not (tmp_path / "lab").exists()


@dataclass(frozen=True)
class Look:
    """An errand that tells what a worker was told."""

    study: Study

    doing: ClassVar[str] = "looking"

    def perform(self, trainer):
        return os.getpid(), os.environ.get("CUDA_VISIBLE_DEVICES")


@pytest.mark.slow
def test_a_worker_is_told_its_gpu_and_so_is_the_one_that_takes_its_place(make_nqm, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    study = make_nqm().study(16)
    with closing(LocalExecutor(QuadraticTrainer(), [16], num_workers=1, gpus=("7",))) as executor:
        pid, gpu = do_errand(executor, Look(study))
        os.kill(pid, 9)
        list(executor.events(5.0))
        successor, same = do_errand(executor, Look(study))

    assert successor != pid
    assert (gpu, same) == ("7", "7")
    assert "CUDA_VISIBLE_DEVICES" not in os.environ
