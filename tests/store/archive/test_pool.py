"""The processes of an import: their errors, their deaths, and that they leave nothing behind."""

from __future__ import annotations

import multiprocessing
import os
import time
from multiprocessing import synchronize

import pytest

from batchlab import pool as module
from batchlab.errors import BatchlabError, InputError
from batchlab.pool import Pool
from batchlab.store.archive.admission import check_name
from batchlab.store.archive.importer import import_archive


def test_every_job_is_done_whatever_the_processes():
    jobs = [(divmod, (number, 7)) for number in range(40)]

    for processes in (1, 3):
        with Pool(processes) as pool:
            assert sorted(pool.results(jobs)) == sorted(divmod(number, 7) for number in range(40))


def test_an_error_in_another_process_is_raised_here_and_tells_where_it_was():
    with Pool(2) as pool:
        pool.submit(check_name, "no name")
        with pytest.raises(InputError, match="no name") as raised:
            pool.drain()

    assert "in check_name" in raised.value.__notes__[0]


def test_a_process_that_is_killed_ends_an_import_in_one_line_and_the_next_goes_on(
    tree, tmp_path, bring, all_files, monkeypatch
):
    start = module._Worker.start

    def start_and_kill(worker) -> None:
        start(worker)
        worker._process.kill()

    with monkeypatch.context() as patch:
        patch.setattr(module._Worker, "start", start_and_kill)
        with pytest.raises(BatchlabError, match="was killed.* Run it again to go on") as raised:
            import_archive(tree, tmp_path / "lab", processes=2)
    assert raised.value.exit_code == 1
    assert "\n" not in str(raised.value)
    assert sorted(os.listdir(tmp_path / "lab" / "sweeps")) == []

    bring(tree, tmp_path / "lab")
    bring(tree, tmp_path / "whole")
    assert all_files(tmp_path / "lab").keys() == all_files(tmp_path / "whole").keys()


def test_what_ends_an_import_does_not_wait_for_its_processes():
    with pytest.raises(KeyboardInterrupt), Pool(2) as pool:
        pool.submit(time.sleep, 600)
        raise KeyboardInterrupt

    assert multiprocessing.active_children() == []


def test_an_import_has_no_lock_whose_name_a_kill_would_leave_in_shared_memory(monkeypatch):
    """Python's own pool of processes has five."""
    made = []
    monkeypatch.setattr(synchronize.SemLock, "__init__", lambda *details, **options: made.append(details))

    with Pool(2) as pool:
        assert list(pool.results([(divmod, (9, 7))])) == [(1, 2)]
    assert made == []
