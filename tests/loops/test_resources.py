"""The processors and GPUs of a trial."""

from __future__ import annotations

import os

import pytest

from batchlab.errors import InputError
from batchlab.loops import resources
from batchlab.loops.resources import trial_variables, trials_at_once, use_here


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    """Eight processors and four GPUs."""
    monkeypatch.setattr(resources, "usable_cores", lambda: 8)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3,5,7")


@pytest.mark.parametrize(
    ("engine", "number"),
    [
        ({}, 8),
        ({"cpus_per_trial": 3}, 2),
        ({"cpus_per_trial": 16}, 1),
        ({"gpus_per_trial": 1}, 4),
        ({"gpus_per_trial": 3}, 1),
        ({"cpus_per_trial": 4, "gpus_per_trial": 1}, 2),
    ],
)
def test_as_many_trials_run_at_once_as_there_is_room_for(engine, number):
    assert trials_at_once(engine) == number


def test_each_worker_has_gpus_of_its_own():
    seen = [trial_variables({"gpus_per_trial": 2}, worker)["CUDA_VISIBLE_DEVICES"] for worker in (0, 1)]

    assert seen == ["2,3", "5,7"]
    assert "CUDA_VISIBLE_DEVICES" not in trial_variables({"cpus_per_trial": 2}, 0)


def test_more_gpus_than_there_are_is_one_sentence():
    with pytest.raises(InputError, match=r"engine.gpus_per_trial = 5, and this machine has 4: use fewer"):
        trials_at_once({"gpus_per_trial": 5})
    with pytest.raises(InputError, match=r"worker 3 has 0 left of 4 GPUs; use fewer workers"):
        trial_variables({"gpus_per_trial": 2}, 2)


def test_the_next_trial_of_a_worker_has_the_same_gpus(monkeypatch):
    seen = []
    for _ in range(3):
        use_here({"gpus_per_trial": 2}, 1)
        seen.append(os.environ["CUDA_VISIBLE_DEVICES"])

    assert seen == ["5,7"] * 3


def test_this_process_is_left_alone_where_the_spec_says_nothing(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")

    use_here({}, 0)

    assert os.environ["OMP_NUM_THREADS"] == "7"
