from __future__ import annotations

import pytest

from batchlab.core.workload import Named, Workload
from batchlab.errors import SpecError

PLAIN = {"dataset": "digits", "model": "fc_128", "optimizer": "sgd"}


def test_a_name_alone_is_short_for_a_table():
    assert Named.model_validate("digits") == Named.model_validate({"name": "digits"})
    assert Named.model_validate("digits").options == {}


@pytest.mark.parametrize("data", ["digits", {"name": "mnist", "train_examples": 10000}])
def test_a_name_is_written_as_short_as_it_can_be(data):
    assert Named.model_validate(data).model_dump() == data


def test_options_are_everything_but_the_name():
    assert Named.model_validate({"name": "mnist", "train_examples": 10}).options == {"train_examples": 10}


def test_options_make_a_difference():
    assert Named.model_validate({"name": "mnist", "train_examples": 10}) != Named.model_validate("mnist")


def test_a_workload_is_named_by_its_three_parts():
    workload = Workload.model_validate({**PLAIN, "dataset": {"name": "mnist_subsets/mnist_6875", "seed": 1}})

    assert workload.name == "mnist_subsets/mnist_6875/fc_128/sgd"


def test_a_workload_with_an_alias_goes_by_it():
    workload = Workload.model_validate({**PLAIN, "alias": "group/digits_half/fc_128/sgd"})

    assert workload.name == workload.plain()["alias"] == "group/digits_half/fc_128/sgd"


def test_a_workload_without_an_alias_is_stored_as_ever():
    """Stored specs and the keys of measured pack sizes stay as they are."""
    assert "alias" not in Workload.model_validate(PLAIN).plain()


@pytest.mark.parametrize("alias", ["", "digits", "digits/fc_128", "../fc_128/sgd", "digits//sgd", "/digits/fc_128/sgd"])
def test_an_alias_is_written_like_a_name(alias):
    with pytest.raises(SpecError, match="^spec.toml: `alias` = "):
        Workload.parse({**PLAIN, "alias": alias}, "spec.toml")


def test_the_schedule_is_constant_where_none_is_given():
    assert Workload.model_validate(PLAIN).schedule.name == "constant"


def test_options_of_optimizer_and_schedule_are_fixed_metaparameters():
    workload = Workload.model_validate(
        {
            **PLAIN,
            "model": {"name": "fc_128", "width": 3},
            "optimizer": {"name": "momentum", "momentum": 0.9},
            "schedule": {"name": "linear_decay", "end_learning_rate_factor": 0.01},
        }
    )

    assert workload.fixed_metaparameters == {"momentum": 0.9, "end_learning_rate_factor": 0.01}


def test_a_workload_is_read_back_from_plain_data():
    workload = Workload.model_validate({**PLAIN, "optimizer": {"name": "lars", "trust": 0.001}})

    assert workload.plain() == {**PLAIN, "optimizer": {"name": "lars", "trust": 0.001}, "schedule": "constant"}
    assert Workload.parse(workload.plain(), "spec.toml") == workload


@pytest.mark.parametrize(
    ("optimizer", "message"),
    [
        ({"momentum": 0.9}, "spec.toml: `optimizer.name` is missing."),
        (3, "spec.toml: `optimizer` = 3: give a name in quotes, or a table with it, such as {name ="),
    ],
)
def test_a_part_without_a_name_is_refused(optimizer, message):
    with pytest.raises(SpecError) as error:
        Workload.parse({**PLAIN, "optimizer": optimizer}, "spec.toml")

    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("dataset", "alias", "is_whole"),
    [
        ("mnist", None, True),
        ({"name": "mnist", "scaling": "per_image"}, None, True),
        ({"name": "mnist", "train_examples": 1000}, None, False),
        ({"name": "mnist", "train_examples": 6875}, "mnist_subsets/mnist_6875/fc_8/sgd", True),
    ],
)
def test_a_part_of_a_dataset_is_not_what_its_name_tells(dataset, alias, is_whole):
    workload = Workload.parse({"dataset": dataset, "model": "fc_8", "optimizer": "sgd", "alias": alias}, "spec")

    assert workload.has_whole_data is is_whole
