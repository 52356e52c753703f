"""Specs mean what they say: no value is taken for another, and what cannot be run is refused before a lab is made."""

from __future__ import annotations

import pytest

from batchlab.core.sweep import Sweep
from batchlab.errors import SpecError
from batchlab.spec.load import load_sweep
from batchlab.store.lab import Lab


def refusal(*settings: str, study: str = "nqm") -> str:
    with pytest.raises(SpecError) as caught:
        load_sweep(study, settings)
    assert str(caught.value).isprintable()
    return str(caught.value)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("sweep.trials=true", "`sweep.trials` = True: give a whole number."),
        ("sweep.trials=8.0", "`sweep.trials` = 8.0: give a whole number."),
        ('seed="7"', "`seed` = '7': give a whole number."),
        ("sweep.max_steps=1e3", "`sweep.max_steps` = 1000.0: give a whole number."),
        ("sweep.race_factor=true", "`sweep.race_factor` = True: give a number."),
        ('sweep.race_factor="2"', "`sweep.race_factor` = '2': give a number."),
        ("sweep.batch_sizes=[true]", "`sweep.batch_sizes[0]` = True: give a whole number."),
        ("engine.keep_states=1", "`engine.keep_states` = 1: "),
        ('engine.pack_size="8"', "`engine.pack_size` = '8': "),
        ('engine.microbatch_size="8"', "`engine.microbatch_size` = '8': give a whole number."),
        ("name=3", "`name` = 3: give text, in quotes."),
        ('search_space.learning_rate={min="0.1", max=1}', "`search_space.learning_rate.min` = '0.1': give a number."),
        ("search_space.learning_rate={values=[true]}", "`search_space.learning_rate.values[0]` = True: "),
        ('sweep.evaluate={every="1"}', "`sweep.evaluate.every` = '1': give a whole number."),
    ],
)
def test_a_value_of_another_type_is_refused_with_key_and_value(setting, message):
    assert message in refusal(setting)


def test_whole_numbers_are_numbers():
    assert load_sweep("nqm", ["sweep.race_factor=2"]).search.race_factor == 2.0


@pytest.mark.parametrize("key", ["08", "+8", "8_0", " 8", "8.0", "0", "٨", "9" * 30, ""])
def test_a_batch_size_is_written_in_one_way(tmp_path, key):
    spec = tmp_path / "spec.toml"
    spec.write_text(f'extends = "nqm"\n[sweep]\nbatch_sizes = [8]\n[at."{key}"]\nmax_steps = 3\n')

    assert "is no batch size: write it with digits alone" in refusal(study=str(spec))


def test_two_tables_of_one_batch_size_are_refused(tmp_path):
    spec = tmp_path / "spec.toml"
    spec.write_text('extends = "nqm"\n[sweep]\nbatch_sizes = [8]\n[at.8]\nmax_steps = 3\n[at.08]\nmax_steps = 4\n')

    assert '`at.08`: "08" is no batch size' in refusal(study=str(spec))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ('sweep.evaluate={every=1, splits=["val", "val"]}', "`sweep.evaluate.splits`: val is listed twice."),
        ("search_space.learning_rate={values=[0.1, 0.3, 0.1]}", "`search_space.learning_rate.values`: 0.1 is listed"),
        ('sweep.goal=["val/risk < 1", "val/risk < 1"]', "`sweep.goal`: val/risk < 1 is listed twice."),
        ("sweep.batch_sizes=[4, 8, 4]", "batch size 4 is listed twice"),
        ('at.4={evaluate={every=1, splits=["val", "val"]}}', "`at.4.evaluate.splits`: val is listed twice."),
    ],
)
def test_what_is_listed_twice_is_refused(setting, message):
    assert message in refusal(setting, "sweep.trials=2")


def test_an_option_of_both_optimizer_and_schedule_is_refused():
    settings = ["workload.optimizer={name='sgd', learning_rate=0.1}", "search_space={}"]

    assert "`learning_rate` is an option of both" in refusal(
        *settings, "workload.schedule={name='constant', learning_rate=0.2}"
    )


def test_a_lab_that_was_filled_with_doubled_values_is_still_read(tmp_path):
    plain = load_sweep("nqm").plain()
    plain["search_space"]["learning_rate"] = {"values": [0.1, 0.1]}
    plain["sweep"]["evaluate"]["splits"] = ["val", "val"]
    lab = Lab.create(tmp_path / "lab")
    with lab.locked():
        lab.save_spec(Sweep.parse(plain, "sweep.json"))

    assert Lab.open(tmp_path / "lab").sweep("nqm").spec.search_space["learning_rate"].values == (0.1, 0.1)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("sweep.race_factor=1e308", "`sweep.race_factor` = 1e+308: give at most 1000000.0."),
        ("sweep.race_factor=inf", "`sweep.race_factor` = inf"),
        ("sweep.race_factor=nan", "`sweep.race_factor` = nan"),
        ("sweep.trials=100001", "`sweep.trials` = 100001: give at most 100000."),
        ("sweep.max_attempts=1000001", "`sweep.max_attempts` = 1000001: give at most 1000000."),
        ("sweep.max_steps=9223372036854775808", "`sweep.max_steps` = 9223372036854775808: give at most"),
        ("sweep.max_examples=9223372036854775808", "`sweep.max_examples` = 9223372036854775808: give at most"),
        ("sweep.evaluate={growth=1e300}", "`sweep.evaluate.growth` = 1e+300: give at most"),
        ("sweep.max_steps=100000000", "sweep.evaluate: about 100,000,000 evaluations"),
        ("engine.pack_size=1000000000", "`engine.pack_size` = 1000000000"),
        ("engine.microbatch_size=10000000000000000000000", "`engine.microbatch_size` = 1000"),
        ("search_space.learning_rate={min=1e-3, max=1.9, points=1000001}", "`search_space.learning_rate.points`"),
        ("search_space.learning_rate={min=1e-308, max=1e308, scale='log'}", "is further than numbers reach"),
        ("search_space.learning_rate={min=-1e308, max=1e308}", "is further than numbers reach"),
        ("workload.dataset.dimension=10000001", "dimension = 10000001 of dataset nqm must be a whole number from 1 to"),
        ("engine.device=meta", 'engine.device = "meta"'),
        ("seed=0x" + "f" * 40, "`seed` = "),
        ("sweep.batch_sizes=[" + ", ".join(map(str, range(1, 1002))) + "]", "give at most 1000."),
    ],
)
def test_what_nobody_can_mean_is_refused(setting, message):
    assert message in refusal(setting)


def test_a_grid_of_evaluations_that_all_but_stands_still_is_refused():
    message = refusal("sweep.evaluate={growth=1.0000000001}", "sweep.max_steps=1000000000000")

    assert "sweep.evaluate: about 56,051," in message


def test_grids_of_several_dimensions_are_counted_and_not_drawn():
    dimension = "{min=0.1, max=0.9, points=100000}"
    settings = [f"search_space={{learning_rate={dimension}, momentum={dimension}}}", "workload.optimizer=momentum"]

    assert "The grid has 10,000,000,000 points, more than 1,000,000" in refusal(*settings)


def test_too_many_replicates_are_refused():
    assert "are more than 100,000 replicates" in refusal("sweep.confirm={seeds=100000, points=100000}", study="digits")


def test_moments_that_fit_into_no_memory_are_refused(monkeypatch):
    monkeypatch.setattr("batchlab.engine.quadratic.machine_bytes", lambda: 16 << 30)
    message = refusal("workload.dataset.dimension=10000000", "sweep.trials=90")

    assert "90 trials of dimension 10,000,000 at once take 57.6 GB" in message


def test_a_metaparameter_beyond_all_floats_is_refused():
    setting = "workload.optimizer={name='sgd', learning_rate=1" + "0" * 400 + "}"

    assert "learning_rate = 1000" in refusal(setting, "search_space={}")


def test_a_setting_writes_one_value():
    assert "`sweep.trials` = '8\\nseed = 3'" in refusal("sweep.trials=8\nseed = 3").replace("\\\\", "\\")


def test_a_thousand_batch_sizes_are_checked_in_a_moment():
    sizes = ", ".join(map(str, range(1, 1001)))

    assert len(load_sweep("nqm", [f"sweep.batch_sizes=[{sizes}]"]).studies()) == 1000
