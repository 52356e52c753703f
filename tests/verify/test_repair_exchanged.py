"""Repairs: every sound part is kept, nothing is deleted, and the next run completes the lab."""

from __future__ import annotations

import json
import shutil

import numpy as np

from batchlab.core.growth import fixed_digest
from batchlab.errors import VERIFY
from batchlab.run.run_sweep import run_sweep
from batchlab.store import parquet
from batchlab.store.lab import Lab
from batchlab.verify.repair import repair_lab


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def aside(lab):
    """Return what was set aside, by its place in the lab, but for the note why."""
    (folder,) = (lab / "set-aside").iterdir()
    return [name for name in files(folder) if name != "why.json"]


def test_studies_that_were_exchanged_are_put_back_in_their_places(copy, curves):
    lab = copy("two")
    before = curves(lab, "quad"), curves(lab, "other")
    places = [lab / "sweeps" / name for name in ("quad/4", "quad/16", "other/4")]
    for place in places:
        place.rename(lab / f"{place.parent.name}-{place.name}")
    for name, place in zip(("quad-16", "other-4", "quad-4"), places, strict=True):
        (lab / name).rename(place)

    _, found = repair_lab(lab)

    assert found.is_sound
    assert (curves(lab, "quad"), curves(lab, "other")) == before


def test_a_sweep_that_was_renamed_gets_its_name_again(copy, curves):
    lab = copy("two")
    before = curves(lab, "quad")
    (lab / "sweeps" / "quad").rename(lab / "sweeps" / "08")

    _, found = repair_lab(lab)

    assert found.is_sound
    assert curves(lab, "quad") == before


def test_a_sweep_that_is_there_twice_lost_its_spec_and_could_never_be_repaired(copy, curves):
    lab = copy("two")
    before = curves(lab, "quad")
    shutil.copytree(lab / "sweeps" / "quad", lab / "sweeps" / "twice")

    _, found = repair_lab(lab)

    assert found.is_sound
    assert curves(lab, "quad") == before
    assert "sweeps/twice/sweep.json" in aside(lab)


def test_the_spec_of_another_sweep_is_set_aside_and_the_studies_stay(copy, curves, make_spec):
    lab = copy("two")
    before = curves(lab, "quad")
    (lab / "sweeps" / "other").rename(lab / "sweeps" / "gone")
    shutil.copy(lab / "sweeps" / "gone" / "sweep.json", lab / "sweeps" / "quad" / "sweep.json")

    repair_lab(lab)
    run_sweep(make_spec(), lab, num_workers=1)

    assert curves(lab, "quad") == before
    assert aside(lab) == ["sweeps/quad/sweep.json"]


def test_studies_that_ask_for_more_than_an_older_spec_wait_for_the_larger_one(copy, curves, make_spec):
    lab = copy("grown")
    before = curves(lab, "quad")
    shutil.copy(copy("two") / "sweeps" / "quad" / "sweep.json", lab / "sweeps" / "quad" / "sweep.json")

    _, found = repair_lab(lab)
    run_sweep(make_spec(trials=5), lab, num_workers=1)

    assert not found.is_sound and not (lab / "set-aside").exists()
    assert curves(lab, "quad") == before


def test_an_older_study_json_cost_the_newer_curves(copy, curves):
    """Its seals are those of the smaller study; the table proves itself, so that nothing is trained again."""
    lab = copy("grown")
    before = curves(lab, "quad")
    shutil.copy(copy("two") / "sweeps" / "quad" / "4" / "study.json", lab / "sweeps" / "quad" / "4" / "study.json")

    _, found = repair_lab(lab)

    assert found.is_sound
    assert curves(lab, "quad") == before
    assert aside(lab) == ["sweeps/quad/4/study.json"] or "sweeps/quad/4/trials.json" in aside(lab)


def test_a_study_json_of_another_study_cost_the_curves_beside_it(copy, curves):
    lab = copy("two")
    before = curves(lab, "quad")
    shutil.copy(lab / "sweeps" / "other" / "16" / "study.json", lab / "sweeps" / "quad" / "4" / "study.json")

    _, found = repair_lab(lab)

    assert found.is_sound
    assert curves(lab, "quad") == before
    assert aside(lab) == ["sweeps/quad/4/study.json"]


def test_trials_that_were_edited_are_set_aside_before_they_are_written_again(copy):
    lab = copy("two")
    folder = lab / "sweeps" / "quad" / "4"
    edited = (folder / "trials.json").read_bytes().replace(b'"COMPLETE"', b'"INCOMPLETE"', 1)
    (folder / "trials.json").write_bytes(edited)
    (folder / "study.json").unlink()

    _, found = repair_lab(lab)

    (place,) = (lab / "set-aside").iterdir()
    assert found.is_sound
    assert (place / "sweeps" / "quad" / "4" / "trials.json").read_bytes() == edited


def test_the_larger_study_that_was_growing_takes_the_place_of_a_damaged_one(copy, curves, make_spec):
    lab, straight = copy("growing"), curves(copy("grown"), "quad")
    (lab / "sweeps" / "quad" / "4" / "measurements.parquet").write_bytes(b"nothing")

    _, found = repair_lab(lab)
    run_sweep(make_spec(trials=5), lab, num_workers=1)

    assert found.is_sound
    assert curves(lab, "quad") == straight
    assert not (lab / "sweeps" / "quad" / "growing").exists()


def test_trials_aside_are_kept_where_their_study_is_searched_again(copy, make_spec):
    lab = copy("two")
    shutil.rmtree(lab / "sweeps" / "quad")
    run_sweep(make_spec(), lab, num_workers=1, only=range(4, 6))
    run_sweep(make_spec(), lab, num_workers=1)
    study = Lab.open(lab).study_folder("quad", 4)
    before = study.aside()[0]
    (study.folder / "measurements.parquet").write_bytes(b"nothing")

    repair_lab(lab)
    run_sweep(make_spec(), lab, num_workers=1)

    after = study.aside()[0]
    assert after.trial_id.tolist() == before.trial_id.tolist()
    assert np.array_equal(after.metrics["val/risk"], before.metrics["val/risk"])


def test_what_was_set_aside_tells_why(copy):
    lab = copy("two")
    (lab / "sweeps" / "quad" / "4" / "trials.json").write_text("[")

    repair_lab(lab)

    (place,) = (lab / "set-aside").iterdir()
    damaged, kept = json.loads((place / "why.json").read_text())
    assert damaged["path"] == "sweeps/quad/4/trials.json"
    assert "is damaged" in damaged["problem"]
    assert VERIFY not in damaged["problem"]
    assert kept == {"path": "sweeps/quad/4/study.json", "problem": "its files are others now"}


def test_the_tables_of_a_study_carry_all_that_its_record_needs(copy, make_spec):
    lab = copy("two")
    _, notes = parquet.read_whole(lab / "sweeps" / "quad" / "4" / "measurements.parquet")

    assert notes["record"]["sweep"] == fixed_digest(make_spec())


def test_a_study_that_grew_without_its_study_json_lost_the_packs_that_it_had_trained(copy, curves, make_spec):
    lab, straight = copy("growing"), curves(copy("grown"), "quad")
    growing = lab / "sweeps" / "quad" / "growing" / "4"
    (growing / "study.json").unlink()
    packs = sorted(path.name for path in (growing / "parts").iterdir())

    _, found = repair_lab(lab)

    assert found.is_sound
    assert sorted(path.name for path in (growing / "parts").iterdir()) == packs
    run_sweep(make_spec(trials=5), lab, num_workers=1)
    assert curves(lab, "quad") == straight


def test_a_spec_that_is_lost_took_the_rule_of_its_sampler_with_it(copy, curves, make_spec):
    """The file that the user has does not tell the version of the sampler; the studies do."""
    lab = copy("two")
    shutil.rmtree(lab / "sweeps" / "quad")
    run_sweep(make_spec(sampler_version=1), lab, num_workers=1)
    before = curves(lab, "quad")
    (lab / "sweeps" / "quad" / "sweep.json").write_text("{")

    repair_lab(lab)
    run_sweep(make_spec(), lab, num_workers=1)

    assert curves(lab, "quad") == before
    assert Lab.open(lab).sweep("quad").spec.search.sampler_version == 1


def test_what_grew_from_a_study_that_is_gone_was_left_behind_for_good(copy, curves, make_spec):
    lab = copy("growing")
    shutil.rmtree(lab / "sweeps" / "quad" / "4")

    run_sweep(make_spec(trials=5), lab, num_workers=1)

    assert not (lab / "sweeps" / "quad" / "growing").exists()
    assert curves(lab, "quad") == curves(copy("grown"), "quad")
