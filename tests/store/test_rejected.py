"""What imports left out: added to, each thing once, counted for the sweep that it would be of."""

from __future__ import annotations

import json

import pytest

from batchlab.errors import DamagedError
from batchlab.store.lab import Lab
from batchlab.store.rejected import Rejected, add_rejected, count_rejected, read_rejected
from batchlab.store.status import sweep_statuses


def thing(path: str = "mnist/fc/sgd/2/3", **changes: str) -> Rejected:
    return Rejected(path=path, **{"reason": "broken", "sweep": "mnist--fc--sgd", "archive": "a.tar", **changes})


def test_a_thing_is_noted_once_whatever_archive_it_is_met_in(tmp_path):
    add_rejected(tmp_path, [thing(), thing(archive="b.tar"), thing("mnist/fc/sgd/2/4")])
    add_rejected(tmp_path, [thing("mnist/fc/sgd/2/4", archive="c.tar"), thing(reason="lost"), thing(sweep="other")])

    assert read_rejected(tmp_path) == [thing(), thing("mnist/fc/sgd/2/4"), thing(sweep="other")]


def test_nothing_new_leaves_the_file_as_it_is(tmp_path):
    add_rejected(tmp_path, [thing()])
    before = (tmp_path / "rejected.json").stat().st_mtime_ns
    add_rejected(tmp_path, [thing(archive="b.tar")])
    add_rejected(tmp_path, [])

    assert (tmp_path / "rejected.json").stat().st_mtime_ns == before


def test_what_an_older_batchlab_noted_counts_for_its_workload(tmp_path):
    """It wrote path and reason alone."""
    paths = ["mnist/fc/sgd/2/3", "mnist/fc/sgd/4", "mnist_subsets/a/fc/sgd/2", "other/fc/sgd/2"]
    (tmp_path / "rejected.json").write_text(json.dumps([{"path": path, "reason": "broken"} for path in paths]))
    workloads = {"one": "mnist/fc/sgd", "two": "mnist_subsets/a/fc/sgd"}

    assert count_rejected(tmp_path, workloads) == {"one": 2, "two": 1, "other/fc/sgd/2": 1}
    add_rejected(tmp_path, [thing(path, sweep="one") for path in paths[:2]])
    assert count_rejected(tmp_path, workloads)["one"] == 2


@pytest.mark.parametrize("text", ["{}", "[1]", "[{}]", '[{"path": 7, "reason": ""}]', "[", "null", "[[]]"])
def test_what_is_no_list_of_them_is_damaged(tmp_path, text):
    (tmp_path / "rejected.json").write_text(text)

    with pytest.raises(DamagedError, match="rejected.json is damaged"):
        read_rejected(tmp_path)
    with pytest.raises(DamagedError):
        add_rejected(tmp_path, [thing()])
    assert (tmp_path / "rejected.json").read_text() == text


def test_the_status_has_the_count_of_every_sweep_and_of_what_has_none(tmp_path, make_sweep):
    lab = Lab.create(tmp_path / "lab")
    lab.admit(make_sweep())
    add_rejected(lab.folder, [thing(), thing("mnist/fc/sgd/2/4"), thing(sweep="small")])

    assert [(status.sweep, status.rejected) for status in sweep_statuses(lab)] == [("small", 1), ("mnist--fc--sgd", 2)]


def test_a_damaged_list_is_a_problem_of_the_status_and_the_rest_is_told(tmp_path, make_sweep):
    lab = Lab.create(tmp_path / "lab")
    lab.admit(make_sweep())
    (lab.folder / "rejected.json").write_text("[")

    small, problem = sweep_statuses(lab)
    assert (small.sweep, small.problems) == ("small", ())
    assert "rejected.json is damaged" in problem.problems[0]
