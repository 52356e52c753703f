"""The datasets of text as a spec asks for them."""

from __future__ import annotations

import numpy as np
import pytest

from batchlab.core.workload import Named
from batchlab.data import registry
from batchlab.errors import DataError, SpecError

TEXTS = ["common_crawl", "lm1b", "lm1b_sample", "tiny_shakespeare", "wikitext_2"]


@pytest.mark.parametrize("name", TEXTS)
def test_datasets_of_text_share_their_task_and_metric(name):
    facts = registry.facts(Named(name=name))

    assert (facts.task, facts.metrics) == ("language_model", ("cross_entropy_error",))
    assert facts.input_shape == (64,)
    assert facts.source.endswith(".")


@pytest.mark.parametrize("name", ["common_crawl", "lm1b_sample", "tiny_shakespeare", "wikitext_2"])
def test_the_shared_files_are_seen(name, shared_data, tmp_path):
    assert registry.data_state(Named(name=name), shared_data) == "present"
    assert registry.data_state(Named(name=name), tmp_path) in ("missing", "fetchable")


def test_options_change_the_facts():
    facts = registry.facts(Named(name="lm1b", vocabulary_size=500, num_tokens=32, train_examples=1000))

    assert (facts.num_classes, facts.input_shape, facts.train_examples) == (500, (32,), 1000)


@pytest.mark.parametrize(
    ("option", "value", "hint"),
    [
        ("vocabulary_size", 258, "a whole number from 259 to 1,000,000"),
        ("vocabulary_size", 500.0, "a whole number from 259 to 1,000,000"),
        ("num_tokens", 0, "a whole number from 1"),
        ("num_tokens", True, "a whole number from 1"),
        ("heldout_share", 0.0, "a number between 0 and 1"),
        ("heldout_share", 1.0, "a number between 0 and 1"),
        ("heldout_share", "0.5", "a number between 0 and 1"),
        ("train_examples", 0, "a whole number from 1[.]"),
    ],
)
def test_a_wrong_value_of_an_option_is_refused(option, value, hint):
    with pytest.raises(SpecError, match=f"{option} = {value!r} of dataset common_crawl must be {hint}"):
        registry.facts(Named.model_validate({"name": "common_crawl", option: value}))


def test_a_part_of_the_training_pieces_is_drawn_as_of_any_dataset(shared_data):
    full = registry.load(Named(name="tiny_shakespeare"), shared_data)
    part = registry.load(Named(name="tiny_shakespeare", train_examples=100), shared_data)

    assert np.array_equal(part.train.inputs, full.take(100).train.inputs)
    assert len(part.val) == 872


def test_more_training_sentences_than_the_files_hold_are_refused(tmp_path):
    (tmp_path / "common_crawl").mkdir()
    (tmp_path / "common_crawl" / "pages.jsonl").write_text('{"text": "a\\nb\\nc\\nd\\ne\\nf\\ng\\nh"}\n')
    wanted = Named(name="common_crawl", vocabulary_size=259, heldout_share=0.5, train_examples=9)

    with pytest.raises(DataError, match="`train_examples` = 9 of dataset common_crawl: the files hold only"):
        registry.load(wanted, tmp_path)
