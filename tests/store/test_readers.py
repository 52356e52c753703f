"""Readers beside a writer that exchanges a study for a grown one: each answers, of the old one or of the new one."""

from __future__ import annotations

import pytest

from batchlab.store import query
from batchlab.store.archive.exporter import export_lab
from batchlab.store.lab import Lab
from batchlab.store.status import sweep_statuses
from batchlab.store.study_folder import StudyFolder
from batchlab.tidying import move
from batchlab.verify import lab as verify


@pytest.fixture
def lab(tmp_path, make_sweep, finish):
    """A lab whose one finished study has just grown: the larger one waits to take its place."""
    lab = Lab.create(tmp_path / "lab")
    lab.admit(make_sweep({"sweep.batch_sizes": [8]}))
    home = lab.study_folder("small", 8)
    finish(home)
    finish(home.growing)
    return lab


def begin_exchange(home):
    """Do the first of the two renames: the study lies in `replaced`, and its place is empty."""
    home.replaced.folder.parent.mkdir(exist_ok=True)
    move(home.folder, home.replaced.folder)


def exchange(home):
    begin_exchange(home)
    home.settle()


BOTH = "select count(distinct m.sweep) from measurements m join trials t using (sweep, batch_size, trial_id)"
READERS = {
    "status": lambda lab, place: sweep_statuses(lab)[0].finished,
    "results": lambda lab, place: len(lab.results(lab.sweep("small")).results),
    "query": lambda lab, place: query.ask(lab.folder, BOTH, 1)[1][0][0],
    "export": lambda lab, place: sum(1 for _ in export_lab(lab, place)),
    "verify": lambda lab, place: 1 - len(verify.verify_lab(lab.folder).findings),
}


@pytest.mark.parametrize("change", [begin_exchange, exchange])
@pytest.mark.parametrize("moment", ["readable", "version", "has_begun", "check_listed"])
@pytest.mark.parametrize("reader", READERS)
def test_a_study_is_found_whenever_it_is_moved(lab, tmp_path, monkeypatch, reader, moment, change):
    """The writer strikes at the first moment that a reader knows something of the study."""
    home, original, struck = lab.study_folder("small", 8), getattr(StudyFolder, moment), []

    def strike(self):
        if not struck and self.folder == home.folder:
            struck.append(moment)
            change(home)

    def watched(self, *arguments):
        answer = original.fget(self) if isinstance(original, property) else original(self, *arguments)
        strike(self)
        return answer

    monkeypatch.setattr(StudyFolder, moment, property(watched) if isinstance(original, property) else watched)

    assert READERS[reader](lab, tmp_path / "out") == 1
    assert struck or (reader, moment) == ("verify", "readable")


def test_a_question_is_put_again_where_tables_were_exchanged_before_they_were_read(lab, monkeypatch):
    original, asked = query.connect, []

    def connected(folder):
        connection = original(folder)
        if not asked:
            exchange(lab.study_folder("small", 8))
        asked.append(folder)
        return connection

    monkeypatch.setattr(query, "connect", connected)

    assert query.ask(lab.folder, BOTH, 1)[1] == [(1,)]
    assert len(asked) == 2


def test_what_is_being_removed_of_a_replaced_study_is_no_damage(lab, monkeypatch):
    home, original = lab.study_folder("small", 8), verify._is_replaced
    begin_exchange(home)

    def is_replaced(study):
        answer = original(study)
        if study == home.replaced.folder and not home.folder.exists():
            move(home.growing.folder, home.folder)
            (study / "study.json").unlink()
        return answer

    monkeypatch.setattr(verify, "_is_replaced", is_replaced)

    assert verify.verify_lab(lab.folder).findings == []
    assert home.folder.exists()
