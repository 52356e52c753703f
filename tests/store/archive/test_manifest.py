"""The manifest of an export: whatever is not as it was exported is named, and nothing is imported."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import pytest

from batchlab.errors import InputError
from batchlab.store.archive.exporter import export_lab
from batchlab.store.archive.manifest import NAME, read_manifest
from batchlab.store.lab import Lab
from batchlab.store.seal import digest

STUDY = "nqm/quadratic/sgd/16"


def refused(bring, source: Path, lab: Path, match: str) -> None:
    with pytest.raises(InputError, match=match):
        bring(source, lab)
    assert not lab.exists()


def packed(tree: Path, path: Path, name: str) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        archive.add(tree, name)
    return path


def test_it_lists_every_file_and_its_digest_is_the_archives(exported, tmp_path, bring):
    lines = (exported / NAME).read_text().splitlines()
    listed = {path: found for found, path in (line.split("  ") for line in lines)}
    files = {str(path.relative_to(exported)): path for path in exported.rglob("*") if path.is_file()}
    del files[NAME]

    assert listed == {name: digest(path.read_bytes()) for name, path in files.items()}
    assert bring(exported, tmp_path / "lab").manifest == digest((exported / NAME).read_bytes())


@pytest.mark.parametrize("name", [f"{STUDY}/study.json", f"{STUDY}/1/metadata.json", f"{STUDY}/1/measurements.csv"])
@pytest.mark.parametrize("form", ["tree", "tar"])
def test_a_changed_byte_is_named(exported, tmp_path, bring, name, form):
    """A flipped bit in a bare tar file is seen by nothing else."""
    content = bytearray((exported / name).read_bytes())
    content[-3] ^= 1
    (exported / name).write_bytes(bytes(content))
    source = exported if form == "tree" else packed(exported, tmp_path / "a.tar.gz", ".")

    refused(bring, source, tmp_path / "lab", rf"does not fit its manifest {NAME}: {name} was changed")


def test_a_file_that_is_gone_or_more_is_named(exported, tmp_path, bring):
    (exported / STUDY / "2" / "measurements.csv").rename(exported / STUDY / "1" / "more")
    refused(bring, exported, tmp_path / "lab", f"{STUDY}/2/measurements.csv is missing")
    (exported / STUDY / "1" / "more").rename(exported / STUDY / "2" / "measurements.csv")
    (exported / STUDY / "7").mkdir()
    (exported / STUDY / "7" / "metadata.json").write_text("{}")
    refused(bring, exported, tmp_path / "lab", f"{STUDY}/7/metadata.json is not listed")


def test_a_study_that_is_gone_is_named(exported, tmp_path, bring):
    (exported / STUDY).rename(tmp_path / "elsewhere")

    refused(bring, exported, tmp_path / "lab", f"{STUDY} is missing")


@pytest.mark.parametrize("top", [".", "out", "batch_science", "./my export"])
def test_a_packed_export_comes_back_from_whatever_folder_it_was_packed_in(exported, run_lab, tmp_path, bring, top):
    """`tar czf x.tar.gz out` is how people pack a folder: its name is no part of a workload's."""
    bring(packed(exported, tmp_path / "a.tar.gz", top), tmp_path / "lab")

    assert Lab.open(tmp_path / "lab").sweep("small") == Lab.open(run_lab).sweep("small")


def test_the_folder_above_an_export_is_as_good(exported, tmp_path, bring):
    (tmp_path / "above").mkdir()
    exported.rename(tmp_path / "above" / "export")

    assert bring(tmp_path / "above", tmp_path / "lab").stored == ["small"]


@pytest.mark.parametrize("form", ["tree", "tar"])
def test_two_exports_at_once_are_refused(exported, tmp_path, bring, form):
    source = tmp_path / "two"
    (source / "b").mkdir(parents=True)
    (source / "b" / NAME).write_bytes((exported / NAME).read_bytes())
    exported.rename(source / "a")
    source = source if form == "tree" else packed(source, tmp_path / "a.tar.gz", ".")

    refused(bring, source, tmp_path / "lab", "holds two exports")


def test_an_export_that_was_stopped_is_told_from_a_whole_one(run_lab, tmp_path, bring):
    next(export_lab(Lab.open(run_lab), tmp_path / "out"))

    refused(bring, tmp_path / "out", tmp_path / "lab", "its export was not ended. Export it again")


@pytest.mark.parametrize(
    "line",
    [
        "no digest",
        "0" * 32 + "  ../../etc/passwd",
        "0" * 32 + "  nqm/quadratic/sgd/016/study.json",
        "0" * 32 + "  nqm/quadratic/sgd/16/notes.txt",
        "0" * 31 + "  nqm/quadratic/sgd/16/study.json",
        "\x1b[31m",
        "",
    ],
)
def test_what_is_no_manifest_is_refused(line):
    with pytest.raises(InputError, match="a line of it is no digest and path"):
        read_manifest(f"{line}\n\n".encode(), "")


def test_a_link_in_place_of_a_manifest_is_refused(exported, tmp_path, bring):
    (exported / NAME).rename(tmp_path / "manifest")
    (exported / NAME).symlink_to(tmp_path / "manifest")

    refused(bring, exported, tmp_path / "lab", "is a link or a device")


def test_bytes_that_are_no_text_are_told_and_not_raised():
    with pytest.raises(InputError, match="does not fit its manifest"):
        read_manifest(b"\xff\xfe" * 100, "")


@pytest.mark.skipif(subprocess.call(["which", "xxhsum"], stdout=subprocess.DEVNULL) != 0, reason="needs xxhsum")
def test_xxhsum_reads_it(exported):
    assert subprocess.run(["xxhsum", "--check", "--quiet", NAME], cwd=exported, check=False).returncode == 0
