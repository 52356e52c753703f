"""Figure 1 gives the simple CNN 2,300 steps at batch size 32 and 66,910 at 1; Figure 3 the FC net 0.091 at 32."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

import batchlab
from batchlab.core.goal import Goal
from batchlab.published.comparison import compare_published, counterpart, counterpart_steps, why_not_compared

STAGES = "stage_factor = 2.0, stage_length = 50, stage_limit = 1024"
STAIRCASE = f'workload.schedule={{name = "staircase", of = "batch_size", {STAGES}, unit = "steps"}}'


@dataclass(frozen=True)
class Summary:
    workload: str
    goal: Goal
    has_whole_data: bool = True
    has_one_batch_size: bool = True


CNN = Summary("mnist/simple_cnn_base/nesterov_momentum", Goal.read("val/classification_error < 0.01"))
FC = Summary("mnist/fc_256_256_256/sgd", Goal.read("val/classification_error < 0.03"))


def test_published_steps_stand_as_they_are():
    found = compare_published(CNN, {32: 1150, 1: 133820, 3: 7})

    assert {1: 2.0, 32: 0.5} == found.ratios
    assert (2300, 66910, None) == (found.steps[32], found.steps[1], found.anchor)
    assert "published (read off Figure 1)" == found.label


def test_a_relative_curve_is_set_equal_where_it_is_1():
    found = compare_published(FC, {2: 2002, 32: 364, 4: 1})

    assert 2 == found.anchor
    assert pytest.approx(182) == found.steps[32]
    assert pytest.approx({32: 2.0, 4: 1 / 1267}) == found.ratios
    assert "published (read off Figure 3, equal at batch size 2)" == found.label


def test_without_that_batch_size_it_is_set_equal_at_the_smallest_that_both_have():
    found = compare_published(FC, {3: 50, 32: 910, 64: 463.2})

    assert 32 == found.anchor
    assert pytest.approx({64: 1.0}) == found.ratios


def test_the_sentence_tells_range_source_and_confidence():
    assert (
        "Steps are 0.50 to 2.00 times the published ones at the 2 batch sizes that can be compared "
        "(Figure 1, read off the picture with high confidence)."
    ) == compare_published(CNN, {32: 1150, 1: 133820}).sentence
    assert (
        "Steps are 2.00 times the published ones at the one batch size that can be compared "
        "(Figure 3, read off the picture with low confidence, both taken as equal at batch size 2)."
    ) == compare_published(FC, {2: 2002, 32: 364}).sentence


def test_the_sentence_holds_minima_against_the_published_minima_too():
    found = compare_published(CNN, {32: 1150})

    assert "Steps are 0.50 times the published ones (minima, as the published ones are, 0.40 times) at the one" in (
        replace(found, minimum_ratios={32: 0.4}).sentence
    )


def test_batch_sizes_that_were_not_published_are_not_compared():
    found = compare_published(CNN, {3: 10})

    assert {} == found.ratios
    assert "No batch size can be compared with the published curve (Figure 1)." == found.sentence


def test_what_cannot_be_compared_is_none_and_says_why():
    other_goal, part = replace(CNN, goal=FC.goal), replace(CNN, has_whole_data=False)
    growing = replace(CNN, has_one_batch_size=False)

    assert compare_published(FC, {3: 10}) is None
    assert "which is a relative one" in why_not_compared(FC)
    assert compare_published(other_goal, {32: 10}) is None
    assert f"there are no published steps of {CNN.workload} to {FC.goal}" == why_not_compared(other_goal)
    assert compare_published(part, {32: 10}) is None
    assert "of which these trained on a part" in why_not_compared(part)
    assert compare_published(growing, {32: 10}) is None
    assert "are of constant batch sizes, and these changed on the way" in why_not_compared(growing)
    assert [True, False, False, False] == [counterpart(each) is not None for each in (CNN, other_goal, part, growing)]


def test_published_steps_are_of_constant_batch_sizes():
    """The paper's Figure 1 has the simple CNN on MNIST at batch size 2,048, which stays: 181 steps."""
    constant, growing = batchlab.load_sweep("mnist-cnn"), batchlab.load_sweep("mnist-cnn", [STAIRCASE])

    assert counterpart_steps(constant)[2048] == 181
    assert counterpart_steps(growing) == {}
