"""Spec files and built-in studies, with values set from the command line."""

from __future__ import annotations

import pytest

from batchlab.errors import SpecError
from batchlab.search.spec import builtin_names, load_sweep

TOML = """
name = "mine"

[workload]
dataset = "digits"
model = "fc_128"
optimizer = "sgd"

[sweep]
batch_sizes = [4, 16]
trials = 3
max_steps = 50
goal = "val/classification_error < 0.03"

[search_space]
learning_rate = {min = 1e-3, max = 1.0, scale = "log"}
"""


@pytest.fixture
def write_spec(tmp_path):
    def write(text=TOML, name="mine.toml"):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


def test_the_built_in_studies_are_there():
    assert {"digits", "mnist-fc", "nqm"} <= set(builtin_names())


@pytest.mark.parametrize("name", builtin_names())
def test_every_built_in_study_is_sound(name):
    sweep = load_sweep(name)

    assert sweep.name == name
    assert len(sweep.studies()) == len(sweep.sweep.batch_sizes) > 3


def test_a_spec_file_is_read(write_spec):
    sweep = load_sweep(write_spec())

    assert sweep.name == "mine"
    assert sweep.workload.name == "digits/fc_128/sgd"
    assert [study.batch_size for study in sweep.studies()] == [4, 16]


@pytest.mark.parametrize(
    ("setting", "read", "expected"),
    [
        ("sweep.trials=8", lambda sweep: sweep.sweep.trials, 8),
        ("sweep.trials = 8", lambda sweep: sweep.sweep.trials, 8),
        ("seed=3", lambda sweep: sweep.seed, 3),
        ("name=other", lambda sweep: sweep.name, "other"),
        ('name="other"', lambda sweep: sweep.name, "other"),
        ("workload.model=fc_256_256", lambda sweep: sweep.workload.model.name, "fc_256_256"),
        ("sweep.batch_sizes=[1, 2]", lambda sweep: sweep.sweep.batch_sizes, (1, 2)),
        ("sweep.protocol=full", lambda sweep: sweep.sweep.protocol, "full"),
        ("sweep.goal=val/cross_entropy_error < 0.2", lambda sweep: sweep.sweep.hardest_goal.threshold, 0.2),
        ('sweep.goal="val/cross_entropy_error < 0.2"', lambda sweep: sweep.sweep.hardest_goal.threshold, 0.2),
        ("sweep.evaluate={every = 5}", lambda sweep: sweep.sweep.evaluate.every, 5),
        ("engine.pack_size=4", lambda sweep: sweep.engine.pack_size, 4),
        ("engine.pack_size=auto", lambda sweep: sweep.engine.pack_size, "auto"),
        ("search_space.learning_rate.max=2.5", lambda sweep: sweep.search_space["learning_rate"].max, 2.5),
        (
            "search_space.learning_rate={values = [0.1]}",
            lambda sweep: sweep.search_space["learning_rate"].values,
            (0.1,),
        ),
        (
            'workload.dataset={name = "digits", train_examples = 100}',
            lambda sweep: sweep.workload.dataset.options,
            {"train_examples": 100},
        ),
    ],
)  # fmt: skip
def test_a_setting_changes_one_value(write_spec, setting, read, expected):
    assert read(load_sweep(write_spec(), [setting])) == expected


def test_a_setting_may_make_a_table_that_the_file_lacks(write_spec):
    text = TOML.replace("max_steps = 50\n", "")

    assert load_sweep(write_spec(text), ["sweep.max_steps=20", "engine.device=cpu"]).engine.device == "cpu"


def test_later_settings_win(write_spec):
    assert load_sweep(write_spec(), ["sweep.trials=8", "sweep.trials=9"]).sweep.trials == 9


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("sweep.trials", '--set sweep.trials: write it as KEY=VALUE, such as "sweep.trials=8".'),
        ("workload.model.width=3", "--set workload.model.width=3: `model` is not a table."),
        ("sweep.trails=8", 'Unknown key "sweep.trails". Did you mean "sweep.trials"?'),
        ("sweep.trials=many", "`sweep.trials` = 'many'"),
        ("sweep.trials=0", "`sweep.trials` = 0"),
        ("sweep.goal=soon", '"soon" is no goal'),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(write_spec, setting, message):
    with pytest.raises(SpecError) as caught:
        load_sweep(write_spec(), [setting])

    assert message in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_file_that_is_no_toml_is_refused_with_its_place(write_spec):
    path = write_spec("name = \n[sweep")

    with pytest.raises(SpecError, match=rf"^{path}: not valid TOML: .*line 1"):
        load_sweep(path)


def test_a_file_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "spec.toml"
    path.write_bytes(b"\xff\xfe\x00")

    with pytest.raises(SpecError, match=f"^{path}: cannot be read"):
        load_sweep(str(path))


def test_what_is_neither_file_nor_study_is_refused_with_the_closest_study():
    with pytest.raises(SpecError) as caught:
        load_sweep("digit")

    assert str(caught.value).startswith('Unknown spec file or built-in study "digit". Did you mean "digits"? Known: ')


def test_a_folder_is_no_spec(tmp_path):
    with pytest.raises(SpecError, match="Unknown spec file or built-in study"):
        load_sweep(str(tmp_path))


def test_a_wrong_value_is_told_with_the_file_and_the_place(write_spec):
    path = write_spec(TOML.replace("trials = 3", "trials = -3"))

    with pytest.raises(SpecError, match=f"^{path}: `sweep.trials` = -3"):
        load_sweep(path)


def test_what_the_registries_refuse_is_told_with_the_file(write_spec):
    path = write_spec(TOML.replace("fc_128", "fc_one"))

    with pytest.raises(SpecError, match=f'^{path}: Unknown model "fc_one"'):
        load_sweep(path)
