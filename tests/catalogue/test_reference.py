"""References: a source, a colon and a name."""

from __future__ import annotations

import pytest

from batchlab.catalogue.reference import is_reference, references, resolve
from batchlab.errors import SpecError


def test_a_reference_gives_the_spec_of_its_source():
    assert resolve("paper:mnist/fc_1024/sgd")["name"] == "paper-mnist--fc_1024--sgd"
    assert resolve("small:mnist/fc_1024/sgd")["name"] == "small-mnist--fc_1024--sgd"


def test_each_spec_is_the_callers_own():
    resolve("paper:mnist/fc_1024/sgd")["sweep"]["batch_sizes"].clear()

    assert len(resolve("paper:mnist/fc_1024/sgd")["sweep"]["batch_sizes"]) == 17


@pytest.mark.parametrize("source", ["paper", "small"])
def test_every_reference_is_one(source):
    assert len(references(source)) == 35
    assert all(is_reference(reference) and resolve(reference) for reference in references(source))


@pytest.mark.parametrize("text", ["digits", "paper", "paper.toml", "folder/paper:x.toml", "builtin:digits"])
def test_other_texts_are_none(text):
    assert not is_reference(text)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("papr:mnist/fc_1024/sgd", 'Unknown source of workloads "papr". Did you mean "paper"?'),
        ("paper:mnist/fc_1024", 'Unknown paper workload "mnist/fc_1024". Did you mean "mnist/fc_1024/sgd"?'),
        ("small:", 'Unknown small workload ""'),
    ],
)
def test_what_is_not_known_is_refused(reference, message):
    with pytest.raises(SpecError) as caught:
        resolve(reference)

    assert message in str(caught.value)


def test_an_unknown_name_is_answered_with_the_closest_of_many():
    with pytest.raises(SpecError) as caught:
        resolve("paper:mnist/simple_cn_base/sgd")

    message = str(caught.value)
    assert 'Did you mean "mnist/simple_cnn_base/sgd"?' in message
    assert message.endswith("and 30 more.")
    assert len(message) < 400
