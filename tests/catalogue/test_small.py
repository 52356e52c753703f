"""The small siblings: sound, small, and never under the paper's name."""

from __future__ import annotations

import pytest

from batchlab.catalogue.paper import paper_names, paper_spec
from batchlab.catalogue.small import small_names, small_spec
from batchlab.core.sweep import Sweep
from batchlab.data.registry import facts
from batchlab.errors import SpecError
from batchlab.spec.check import check_sweep


def test_every_workload_of_the_paper_has_a_sibling():
    assert small_names() == paper_names()


@pytest.mark.parametrize("name", small_names())
def test_every_sibling_is_sound_and_small(name):
    sweep = Sweep.parse(small_spec(name), name)

    check_sweep(sweep)

    assert sweep.search.trials == 4
    assert len(sweep.search.batch_sizes) == 3
    assert sweep.search.protocol == "race"
    assert sweep.search.max_steps is not None and sweep.search.max_steps <= 400
    examples = facts(sweep.workload.dataset).train_examples
    assert examples is None or examples <= 11_000


@pytest.mark.parametrize("name", small_names())
def test_a_sibling_trains_the_same_model_with_the_same_algorithm(name):
    small, paper = (Sweep.parse(spec(name), name) for spec in (small_spec, paper_spec))

    assert small.workload.model.name == paper.workload.model.name
    assert small.workload.optimizer == paper.workload.optimizer
    assert small.workload.schedule == paper.workload.schedule
    assert small.search_space.names == paper.search_space.names


def test_no_sibling_goes_by_a_name_of_the_paper():
    small = [Sweep.parse(small_spec(name), name) for name in small_names()]

    assert not {sweep.workload.name for sweep in small} & set(paper_names())
    assert not {sweep.name for sweep in small} & {paper_spec(name)["name"] for name in paper_names()}
    assert len({sweep.name for sweep in small}) == 35


def test_subsets_keep_their_proportions():
    sizes = [
        small_spec(f"mnist_subsets/mnist_{size}/simple_cnn_base/nesterov_momentum")["workload"]["dataset"][
            "train_examples"
        ]
        for size in (55000, 27500, 13750, 6875)
    ]

    assert sizes == [4000, 2000, 1000, 500]


def test_an_unknown_name_is_told_with_the_closest():
    with pytest.raises(SpecError, match='Unknown small workload "mnist/fc_1024/sdg". Did you mean "mnist/fc_1024/sgd"'):
        small_spec("mnist/fc_1024/sdg")
