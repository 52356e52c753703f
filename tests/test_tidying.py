"""Folders of a lab: tidied of our own files only, and no link is followed."""

from __future__ import annotations

import os

import pytest

from batchlab.errors import LabError, StorageError, UnreadableError
from batchlab.files import is_temporary, is_there, make_folder, names_in, read_bounded, write_file
from batchlab.store.lock import hold_lock
from batchlab.tidying import copy_files, move, move_rest, remove_files


@pytest.fixture
def outside(tmp_path):
    """A folder of the user's, with a file."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "thesis.tex").write_text("mine")
    return tmp_path / "outside"


def test_only_files_of_our_names_are_removed(tmp_path):
    (tmp_path / "parts").mkdir()
    for name in ("ours-1", "ours-2", "notes.txt"):
        (tmp_path / "parts" / name).write_text(name)

    remove_files(tmp_path / "parts", lambda name: name.startswith("ours"))

    assert names_in(tmp_path / "parts") == ["notes.txt"]


def test_an_emptied_folder_goes(tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "ours").write_text("")

    remove_files(tmp_path / "parts", lambda name: True)

    assert names_in(tmp_path) == []


def test_a_link_to_a_folder_is_not_emptied(tmp_path, outside):
    (tmp_path / "parts").symlink_to(outside)

    remove_files(tmp_path / "parts", lambda name: True)

    assert (outside / "thesis.tex").read_text() == "mine"


def test_a_folder_by_one_of_our_names_is_left(tmp_path):
    (tmp_path / "parts" / "ours").mkdir(parents=True)
    (tmp_path / "parts" / "ours" / "file").write_text("")

    remove_files(tmp_path / "parts", lambda name: True)

    assert (tmp_path / "parts" / "ours" / "file").exists()


def test_what_is_left_goes_along_by_another_name_where_its_own_is_taken(tmp_path):
    for place in ("old/notes.txt", "old/plan.txt", "old/in/a.txt", "new/plan.txt", "new/in/b.txt"):
        write_file(tmp_path / place, place.encode())

    move_rest(tmp_path / "old", tmp_path / "new")

    assert (tmp_path / "new" / "notes.txt").read_text() == "old/notes.txt"
    assert (tmp_path / "new" / "plan.txt").read_text() == "new/plan.txt"
    assert (tmp_path / "new" / "plan.txt.2").read_text() == "old/plan.txt"
    assert sorted(path.name for path in (tmp_path / "new" / "in").iterdir()) == ["a.txt", "b.txt"]
    assert not (tmp_path / "old").exists()


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_nothing_but_files_and_folders_is_copied(tmp_path, outside, kind):
    write_file(tmp_path / "source" / "8" / "study.json", b"{}")
    strange = tmp_path / "source" / "8" / "strange"
    os.mkfifo(strange) if kind == "pipe" else strange.symlink_to(outside)

    with pytest.raises(LabError, match=r"strange is (a link|no regular file), which no lab holds"):
        copy_files(tmp_path / "source", tmp_path / "place")


def test_a_place_that_is_taken_is_a_storage_error(tmp_path):
    for place in ("one/file", "two/file"):
        write_file(tmp_path / place, b"")

    with pytest.raises(StorageError, match="two"):
        move(tmp_path / "one", tmp_path / "two")


# Writing below a folder that is held


@pytest.mark.parametrize("link", ["sweeps", "sweeps/digits", "sweeps/digits/8", "sweeps/digits/8/parts"])
def test_nothing_is_written_through_a_link_in_a_held_folder(tmp_path, outside, link):
    lab = tmp_path / "lab"
    (lab / link).parent.mkdir(parents=True)
    (lab / link).symlink_to(outside)
    place = lab / "sweeps" / "digits" / "8" / "parts" / "trials-0.parquet"

    with hold_lock(lab / "lock"):
        for write in (
            lambda: write_file(place, b"x"),
            lambda: make_folder(place.parent),
            lambda: move(place, lab / "x"),
        ):
            with pytest.raises(LabError, match=f"^{lab / link} is a link, which no lab holds"):
                write()

    assert names_in(outside) == ["thesis.tex"]


def test_the_held_folder_itself_may_be_a_link(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "lab").symlink_to(tmp_path / "disk")

    with hold_lock(tmp_path / "lab" / "lock"):
        write_file(tmp_path / "lab" / "sweeps" / "a" / "sweep.json", b"{}")

    assert (tmp_path / "disk" / "sweeps" / "a" / "sweep.json").read_bytes() == b"{}"


def test_a_link_in_the_place_of_a_file_is_replaced_not_followed(tmp_path, outside):
    (tmp_path / "study.json").symlink_to(outside / "thesis.tex")

    write_file(tmp_path / "study.json", b"{}")

    assert not (tmp_path / "study.json").is_symlink()
    assert (outside / "thesis.tex").read_text() == "mine"


def test_a_temporary_name_that_is_a_link_is_refused_and_left(tmp_path, outside, monkeypatch):
    monkeypatch.setattr("platform.node", lambda: "host")
    temporary = tmp_path / f"study.json.host.{os.getpid()}.tmp"
    temporary.symlink_to(outside / "thesis.tex")

    with pytest.raises(LabError, match=f"^{temporary} is in the way: it is a link"):
        write_file(tmp_path / "study.json", b"{}")

    assert temporary.is_symlink()
    assert (outside / "thesis.tex").read_text() == "mine"


def test_a_leftover_of_a_process_of_our_number_is_written_anew(tmp_path, monkeypatch):
    monkeypatch.setattr("platform.node", lambda: "host")
    (tmp_path / f"study.json.host.{os.getpid()}.tmp").write_text("half of something much longer")

    write_file(tmp_path / "study.json", b"{}")

    assert (tmp_path / "study.json").read_bytes() == b"{}"
    assert names_in(tmp_path) == ["study.json"]


@pytest.mark.parametrize(
    "name",
    [
        "study.json.host.٣٤٥٦٧٨٩.tmp",
        f"study.json.host.{'9' * 5000}.tmp"[:250],
        "study.json.tmp",
        "study.json.host.0.tmp",
    ],
)
def test_names_that_only_look_like_temporary_ones_are_left(tmp_path, monkeypatch, name):
    monkeypatch.setattr("platform.node", lambda: "host")
    (tmp_path / name).write_text("mine")

    write_file(tmp_path / "study.json", b"{}")

    assert (tmp_path / name).read_text() == "mine"
    assert not is_temporary(name, "trials.json")


# What the system refuses


@pytest.mark.parametrize("number", [13, 5, 116], ids=["permission", "I/O error", "stale handle"])
def test_what_the_system_refuses_to_read_is_said_as_that(tmp_path, monkeypatch, number):
    write_file(tmp_path / "folder" / "study.json", b"{}")

    def refuse(*arguments, **options):
        raise OSError(number, os.strerror(number), str(arguments[0]))

    for name in ("open", "listdir", "lstat"):
        monkeypatch.setattr(os, name, refuse)
    looks = (
        lambda: read_bounded(tmp_path / "folder" / "study.json", 10),
        lambda: is_there(tmp_path / "folder" / "study.json"),
        lambda: names_in(tmp_path / "folder"),
    )
    said = []
    for look in looks:
        with pytest.raises(UnreadableError) as caught:
            look()
        said.append(str(caught.value))
    monkeypatch.undo()

    assert all(os.strerror(number) in line and "damaged" not in line for line in said)
    assert UnreadableError.exit_code == 2


def test_what_is_not_there_is_not_there(tmp_path):
    (tmp_path / "file").write_text("")

    assert not is_there(tmp_path / "nothing")
    assert not is_there(tmp_path / "file" / "below")
    assert names_in(tmp_path / "nothing") == []
