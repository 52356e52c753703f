"""What a look at a whole lab finds."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import xxhash

from batchlab.core.growth import fixed_digest
from batchlab.errors import VERIFY
from batchlab.run.run_sweep import run_sweep
from batchlab.store.checkpoint import read_checkpoint
from batchlab.store.lab import Lab
from batchlab.store.parquet import read_whole
from batchlab.store.seal import sealed_json
from batchlab.verify import lab as module
from batchlab.verify.lab import verify_lab
from batchlab.verify.repair import repair_lab

SAMPLES = Path(__file__).parents[1] / "store" / "labs"
SAMPLE = SAMPLES / "format-3"
FILES = sorted(str(path.relative_to(SAMPLE)) for path in SAMPLE.rglob("*") if path.is_file())


def flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


def says(path: Path) -> object:
    """Return what a part or a checkpoint holds."""
    if path.suffix == ".npz":
        return {array: values.tolist() for array, values in (read_checkpoint(path) or {}).items()}
    rows, record = read_whole(path)
    return rows.trial_id.tolist(), rows.step.tolist(), str(rows.metrics), record


DAMAGES = {
    "a bit flipped": flipped,
    "cut": lambda content: content[:-7],
    "emptied": lambda content: b"",
    "lengthened": lambda content: content + b"\n ",
}


@pytest.mark.parametrize("deep", [False, True])
def test_a_lab_as_it_was_written_is_sound(sample, deep):
    found = verify_lab(sample, deep=deep)

    assert (found.findings, found.foreign, found.format) == ([], [], 3)
    assert found.num_studies == 3
    assert found.num_bytes == sum(path.stat().st_size for path in sample.glob("sweeps/*/*/**/*") if path.is_file())


def test_what_earlier_versions_kept_beside_a_sweep_is_neither_read_nor_foreign(sample):
    lab = Lab.open(sample)
    before = lab.results(lab.sweep("finished")).results
    (sample / "sweeps" / "finished" / "best_so_far.arrow").write_bytes(b"ARROW1, and then no table")
    after = lab.results(lab.sweep("finished")).results
    found = verify_lab(sample)

    assert (found.findings, found.foreign) == ([], [])
    assert repr(before) == repr(after)


@pytest.mark.parametrize("format_", [1, 2])
def test_a_lab_from_before_there_were_seals_is_sound_and_its_format_told(format_, tmp_path):
    found = verify_lab(Path(shutil.copytree(SAMPLES / f"format-{format_}", tmp_path / "lab")), deep=True)

    assert (found.findings, found.format) == ([], format_)


@pytest.mark.parametrize("name", [name for name in FILES if name != "lab.json"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_every_damaged_file_is_named(sample, name, damage):
    """Of a pack in training, only what it says is sealed: bytes between its arrays say nothing."""
    (sample / name).write_bytes(DAMAGES[damage]((SAMPLE / name).read_bytes()))
    named = name in {str(finding.path.relative_to(sample)) for finding in verify_lab(sample).findings}

    assert named or ("unfinished" in name and says(sample / name) == says(SAMPLE / name))


@pytest.mark.parametrize("name", [name for name in FILES if "checkpoints" not in name and "parts" not in name])
def test_every_file_that_is_gone_is_noticed(sample, name):
    """But for those of packs in training, which are trained again, and the record of a study that has no outcome."""
    if name == "sweeps/unfinished/32/study.json":
        return
    (sample / name).unlink()

    assert not verify_lab(sample).is_sound


def test_files_exchanged_between_batch_sizes_are_noticed(sample):
    folder = sample / "sweeps" / "finished"
    for name in ("trials.json", "measurements.parquet", "confirmed.json", "confirmed.parquet", "study.json"):
        one, other = folder / "16" / name, folder / "64" / name
        contents = one.read_bytes(), other.read_bytes()
        one.write_bytes(contents[1])
        other.write_bytes(contents[0])

        assert {finding.path.parent.name for finding in verify_lab(sample).findings} >= {"16", "64"} or {
            finding.path.name for finding in verify_lab(sample).findings
        } == {"16", "64"}
        one.write_bytes(contents[0])
        other.write_bytes(contents[1])


def test_a_study_of_another_sweep_is_a_stranger(sample, nqm):
    shutil.rmtree(sample / "sweeps" / "finished" / "16")
    shutil.copytree(nqm / "sweeps" / "nqm" / "16", sample / "sweeps" / "finished" / "16")

    (finding,) = verify_lab(sample).findings
    assert finding.path == sample / "sweeps" / "finished" / "16"
    assert "it is of nqm/quadratic/sgd" in finding.problem


def test_a_point_that_no_sampler_drew_is_found_by_a_deep_look(nqm):
    """The seal is made anew, as only somebody who knows how could."""
    path = nqm / "sweeps" / "nqm" / "16" / "study.json"
    data = json.loads(path.read_text())
    del data["digest"]
    data["points"][-1]["learning_rate"] *= 1.5
    path.write_bytes(sealed_json(data))

    assert any("its points are not those" in finding.problem for finding in verify_lab(nqm, deep=True).findings)


def test_study_json_holds_the_digests_of_its_files_of_its_sweep_and_of_itself(nqm, nqm_sweep):
    folder = nqm / "sweeps" / "nqm" / "16"
    before, _, _ = (folder / "study.json").read_bytes().rpartition(b',\n "digest": ')
    data = json.loads((folder / "study.json").read_text())

    assert sorted([*data["files"], "study.json"]) == sorted(path.name for path in folder.iterdir())
    for name, seal in data["files"].items():
        content = (folder / name).read_bytes()
        assert seal == {"size": len(content), "digest": xxhash.xxh3_128_hexdigest(content)}
    assert data["sweep"] == fixed_digest(nqm_sweep)
    assert data["digest"] == xxhash.xxh3_128_hexdigest(before)


def test_a_file_of_somebody_elses_is_named_and_left_alone(sample):
    (sample / "sweeps" / "finished" / "notes.txt").write_text("mine")
    (sample / "sweeps" / "finished" / "16" / "thoughts.txt").write_text("mine")
    found = verify_lab(sample)

    assert found.is_sound
    assert sorted(path.name for path in found.foreign) == ["notes.txt", "thoughts.txt"]


def test_nothing_is_changed_by_looking(sample):
    before = {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in sample.rglob("*")}
    verify_lab(sample, deep=True)

    assert {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in sample.rglob("*")} == before


def test_the_share_that_was_looked_at_ends_at_one(nqm):
    shares: list[float] = []
    verify_lab(nqm, report=shares.append)

    assert shares == sorted(shares)
    assert 0.9 < shares[-1] <= 1


def test_the_rest_of_a_damaged_lab_answers(sample):
    (sample / "sweeps" / "finished" / "16" / "trials.json").write_text("[]")
    lab = Lab.open(sample)
    results = lab.results(lab.sweep("finished"))

    assert [result.batch_size for result in results.results] == [64]
    assert [str(problem).split()[0] for problem in results.problems] == [
        str(sample / "sweeps" / "finished" / "16" / "trials.json")
    ]


def test_what_is_left_of_a_study_that_a_larger_one_replaced_is_no_damage(sample):
    """A disk that refuses, or a kill, while the smaller one is removed: the larger one is whole."""
    study = next(path for path in sample.glob("sweeps/*/*") if (path / "trials.json").exists())
    left = study.parent / "replaced" / study.name
    shutil.copytree(study, left)
    (left / "study.json").unlink()

    assert verify_lab(sample).is_sound
    study.rename(study.with_name("elsewhere"))
    assert not verify_lab(sample).is_sound, "now it is the only one, and half of it is gone"


def test_a_link_to_nowhere_in_the_place_of_a_checkpoint_passed_for_one_that_is_gone(sample):
    path = next((sample / "sweeps").glob("*/*/checkpoints/*.npz"))
    path.unlink()
    path.symlink_to("nowhere")

    (finding,) = verify_lab(sample).findings

    assert finding.path == path
    assert "it is a link, which no lab holds" in finding.problem


def test_files_that_a_writer_makes_for_a_moment_ended_a_look_with_the_words_of_the_system(sample, monkeypatch):
    passing = sample / "sweeps" / "finished" / "sweep.json.host.1.tmp"
    looked_at = module._files

    def with_one_that_goes(folder):
        yield from looked_at(folder)
        yield passing

    monkeypatch.setattr(module, "_files", with_one_that_goes)

    assert verify_lab(sample).findings == []
    assert module._all_names(sample / "gone") == []


def test_a_study_that_an_older_spec_does_not_list_is_told(nqm, nqm_sweep):
    spec = nqm / "sweeps" / "nqm" / "sweep.json"
    older = spec.read_bytes()
    search = nqm_sweep.search.model_copy(update={"batch_sizes": (1, 4, 16)})
    run_sweep(nqm_sweep.model_copy(update={"search": search}), nqm, num_workers=1)
    assert verify_lab(nqm).is_sound

    spec.write_bytes(older)

    lab = Lab.open(nqm)
    (problem,) = lab.results(lab.find()).problems
    assert "4 is no batch size of" in str(problem)
    (finding,) = verify_lab(nqm).findings
    assert str(problem) == f"{finding.problem} {VERIFY}"
    done, found = repair_lab(nqm)
    assert (done, found.findings) == ([], [finding])
    assert spec.read_bytes() == older
