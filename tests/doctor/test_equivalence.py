"""A right loop is equivalent, nothing is left behind, and wrong input is one line."""

from __future__ import annotations

import copy
import random
from collections import UserDict
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import batchlab
from batchlab.doctor.equivalence import assert_equivalent, equivalence
from batchlab.errors import InputError
from tests.doctor import loops
from tests.doctor.loops import EIGHT, PADDING, LanguageModel, sentences


def test_token_weights_of_4_and_60_give_norm_ratio_1():
    verdict = equivalence(loops.right, sentences(4, 60), LanguageModel(), cuts=[(1, 1), ((1,), (1,))])

    assert verdict.precision == "float64"
    assert [row.num_workers for row in verdict.rows] == [1, 2]
    for row in verdict.rows:
        assert row.comparison.norm_ratio == pytest.approx(1, abs=1e-6)
        assert row.comparison.relative_error < 1e-6
    assert verdict.is_equivalent


def test_token_weights_of_4_and_60_in_single_precision(one_thread):
    def step(model, microbatches):
        assert model.head.weight.dtype == torch.float32
        loops.right_alone(model, microbatches)

    verdict = equivalence(step, sentences(4, 60), LanguageModel(), cuts=[(1, 1)])

    assert verdict.precision == "float32"
    assert verdict.rows[0].comparison.norm_ratio == pytest.approx(1, abs=1e-6)


def test_the_mean_of_means_of_4_and_60_is_far_off():
    verdict = equivalence(loops.mean_of_means, sentences(4, 60), LanguageModel(), cuts=[(1, 1)])

    assert verdict.rows[0].comparison.relative_error > 0.1


def state_of(model):
    return (
        {name: each.clone() for name, each in model.state_dict().items()},
        {name: None if each.grad is None else each.grad.clone() for name, each in model.named_parameters()},
        [module.training for module in model.modules()],
        [len(each._backward_hooks or {}) for each in model.parameters()],
    )


def same(one, other):
    is_same = {
        name: torch.equal(one[name], other[name]) if one[name] is not None else other[name] is None for name in one
    }
    return one.keys() == other.keys() and all(is_same.values())


def test_everything_is_as_it_was_after_a_check():
    model = LanguageModel(nn.BatchNorm1d(8), dropout=0.3)
    model.dropout.eval()
    loops.mean_of_means(model, [sentences(*EIGHT)])
    model.embedding.weight.grad = None
    places = [each.data_ptr() for each in (*model.parameters(), *model.buffers())]
    before, optimizer = state_of(model), torch.optim.Adam(model.parameters())
    state = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state()  # noqa: NPY002

    verdict = equivalence(_whole_step(optimizer), sentences(*EIGHT), model, cuts=[(3, 5)])

    after = state_of(model)
    assert not verdict.is_equivalent
    assert same(before[0], after[0]) and same(before[1], after[1])
    assert before[2:] == after[2:]
    assert [each.data_ptr() for each in (*model.parameters(), *model.buffers())] == places
    assert not optimizer.state
    assert random.getstate() == state[0] and np.random.get_state()[1].tolist() == state[1]  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), state[2])
    assert not any("train" in vars(module) for module in model.modules())


def _whole_step(optimizer):
    def step(model, microbatches):
        model.train()
        optimizer.zero_grad()
        loops.mean_of_means(model, microbatches)
        optimizer.step()
        optimizer.zero_grad()
        raise AssertionError("the step goes on after its update")

    return step


def test_everything_is_as_it_was_after_a_step_that_raises():
    model = LanguageModel()
    before = state_of(model)

    def step(model, microbatches):
        loops.right_alone(model, microbatches)
        with torch.no_grad():
            model.head.weight.add_(1)
        raise RuntimeError("out of coffee")

    with pytest.raises(RuntimeError, match="out of coffee"):
        equivalence(step, sentences(*EIGHT), model)

    assert same(before[0], state_of(model)[0])


def test_a_whole_step_is_ended_where_its_optimizer_would_change_weights():
    model = LanguageModel()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(model, microbatches):
        optimizer.zero_grad()
        loops.right_alone(model, microbatches)
        optimizer.step()
        optimizer.zero_grad()

    assert equivalence(step, sentences(*EIGHT), model).is_equivalent


@pytest.mark.parametrize("is_unscaled", [False, True])
def test_a_scaled_loss_is_unscaled_in_every_run(is_unscaled):
    model = LanguageModel()
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1), torch.amp.GradScaler("cpu")

    def step(model, microbatches):
        optimizer.zero_grad()
        total = loops.num_tokens(microbatches)
        for microbatch in microbatches:
            scaler.scale(loops.token_loss(model, microbatch, "sum") / total).backward()
        if is_unscaled:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        scaler.step(optimizer)
        scaler.update()

    verdict = equivalence(step, sentences(*EIGHT), model)

    assert verdict.is_equivalent, verdict
    step(model, [sentences(*EIGHT)])  # and it goes on as it should


def test_another_models_optimizer_may_go_on():
    model, other = LanguageModel(), nn.Linear(2, 1)
    optimizer = torch.optim.SGD(other.parameters(), lr=0.1)

    def step(model, microbatches):
        other(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        loops.right_alone(model, microbatches)

    assert equivalence(step, sentences(*EIGHT), model).is_equivalent


def test_accepted_causes_do_not_fail():
    model = LanguageModel(nn.BatchNorm1d(8))

    strict, lenient = (
        equivalence(loops.right, sentences(*EIGHT), model, cuts=[(3, 5)], allow=allow)
        for allow in ([], ["batch normalisation"])
    )

    assert not strict.is_equivalent
    assert lenient.is_equivalent
    assert str(lenient).startswith("Equivalent but for what was accepted: ")
    assert not equivalence(loops.mean_of_means, sentences(*EIGHT), model, allow=["batch normalisation"]).is_equivalent


def test_a_test_fails_with_the_verdict():
    assert assert_equivalent(loops.right, sentences(*EIGHT), LanguageModel()).is_equivalent
    with pytest.raises(AssertionError, match="Cause: mean of means. At 8 x 1: each microbatch counts the same"):
        assert_equivalent(loops.mean_of_means, sentences(*EIGHT), LanguageModel())


def test_a_cut_that_nobody_asked_for_and_that_cannot_be_run_is_shown_and_does_not_count():
    """Batch normalisation refuses a single example."""
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))

    def step(model, microbatches):
        for inputs, targets in microbatches:
            (F.mse_loss(model(inputs), targets) / len(microbatches)).backward()

    batch = (torch.randn(4, 3), torch.randn(4, 1))
    verdict = equivalence(step, batch, model, allow=["batch normalisation", "mean of means"])

    (failed,) = [row for row in verdict.rows if row.failure and row.cut == "4 x 1"]
    assert "more than 1 value per channel" in failed.failure
    assert verdict.is_equivalent
    assert "not run: ValueError" in str(verdict)
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        equivalence(step, batch, model, cuts=[(1, 1, 1, 1)])


def test_where_no_cut_can_be_run_nothing_is_called_equivalent():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))

    def step(model, microbatches):
        for inputs in microbatches:
            (model(inputs).pow(2).mean() / len(microbatches)).backward()

    verdict = equivalence(step, torch.randn(2, 3), model)

    assert not verdict.is_equivalent
    assert str(verdict).startswith("NOT known: the step could not be run in any of 1 way to cut a batch of 2 examples.")
    assert verdict.worst is None


@dataclass
class Pair:
    inputs: Tensor
    targets: Tensor
    name: str = "pair"


@pytest.mark.parametrize(
    "batch",
    [
        torch.randn(6, 3),
        [torch.randn(6, 3)],
        (torch.randn(6, 3), torch.randn(6), "name", None, 0.5),
        {"inputs": torch.randn(6, 3), "names": list("abcdef"), "scale": torch.tensor(2.0)},
        Pair(torch.randn(6, 3), torch.randn(6)),
        {"nested": (torch.randn(6, 3), {"targets": np.ones(6)})},
    ],
    ids=["tensor", "list", "tuple", "dict", "dataclass", "nested"],
)
def test_a_batch_may_have_many_forms(batch):
    def inputs_of(each):
        if isinstance(each, Tensor):
            return each
        if isinstance(each, dict):
            return inputs_of(next(iter(each.values())))
        return each.inputs if isinstance(each, Pair) else each[0]

    def step(model, microbatches):
        assert all(type(each) is type(batch) for each in microbatches)
        total = sum(len(inputs_of(each)) for each in microbatches)
        for each in microbatches:
            (model(inputs_of(each)).pow(2).sum() / total).backward()

    assert equivalence(step, batch, nn.Linear(3, 1)).is_equivalent


def nothing(model, microbatches):
    return None


def zero(model, microbatches):
    (0 * loops.token_loss(model, microbatches[0])).backward()


def infinite(model, microbatches):
    (float("inf") * loops.token_loss(model, microbatches[0])).backward()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch": sentences(4)}, "The batch has 1 example: give at least two"),
        ({"batch": (torch.zeros(3), torch.zeros(4))}, r"The batch \(tuple\) has parts of 3 and 4 examples: give"),
        ({"batch": torch.zeros(0, 3)}, "The batch has 0 examples: give at least two"),
        ({"model": nn.LazyLinear(1)}, "The model has layers whose shapes are not known yet"),
        ({"batch": "text"}, r"The batch \(str\) has no tensor"),
        ({"model": "net"}, "model is str, not a torch.nn.Module"),
        ({"model": nn.Identity()}, r"The model \(Identity\) has no parameters to train"),
        ({"step": nothing}, "The step left no gradients"),
        ({"step": zero}, "The gradient of the whole batch is zero"),
        ({"step": infinite}, "The gradient of the whole batch is not finite"),
        ({"cuts": [(3, 3)]}, r"cuts: \(3, 3\) has 6 examples and the batch 8: cut all of it"),
        ({"cuts": [(4, 0, 4)]}, "no sizes of microbatches"),
        ({"cuts": [8.0]}, "no sizes of microbatches"),
        ({"cuts": []}, r"cuts = \[\]: give at least one in a list"),
        ({"cuts": 4}, "cuts = 4: give at least one in a list"),
        ({"cuts": (4, 4)}, "cuts: 4 is no sizes of microbatches"),
        ({"cuts": ["44"]}, "cuts: 44 is no sizes of microbatches"),
        ({"cuts": [[]]}, "has 0 examples and the batch 8"),
        ({"cuts": [[(4,), ()]]}, "has 4 examples and the batch 8"),
        ({"cuts": [[(8,), ()]]}, "some worker has none"),
        ({"step": "step"}, "step is str, no function"),
        ({"workers": "2"}, "workers: 2 is no number of workers"),
        ({"tolerance": "small"}, "tolerance = small: give a number between 0 and 1"),
        ({"cuts": [(4, 4)], "workers": [2]}, "not both"),
        ({"workers": [0]}, "workers: 0 is no number of workers"),
        ({"workers": [9]}, "9 workers cannot share 8 examples"),
        ({"tolerance": 0.0}, "tolerance = 0.0: give a number between 0 and 1"),
        ({"allow": ["drop-out"]}, 'Unknown cause "drop-out". Did you mean "dropout"'),
        ({"allow": "dropout"}, 'allow = "dropout": give a list'),
        ({"padding": {"mask": 0}}, r"padding\[mask\]: the batch \(dict\) has no such part"),
        ({"padding": [0]}, "padding = \\[0\\]: give a dict"),
    ],
)
def test_wrong_input_is_one_clear_line(changes, message):
    given = {"step": loops.right_alone, "batch": sentences(*EIGHT), "model": LanguageModel(), **changes}

    with pytest.raises(InputError, match=message) as raised:
        equivalence(given.pop("step"), given.pop("batch"), given.pop("model"), **given)

    assert "\n" not in str(raised.value)


def test_workers_that_do_not_exchange_equally_often_are_told():
    def step(model, microbatches, worker):
        if worker.rank == 0:
            worker.sum(1)
        loops.right_alone(model, microbatches)

    with pytest.raises(InputError, match="let each call worker.sum and worker.average_gradients equally often"):
        equivalence(step, sentences(*EIGHT), LanguageModel())


def test_the_verdict_is_data_and_text():
    verdict = batchlab.equivalence(loops.mean_of_means, sentences(*EIGHT), LanguageModel(), padding=PADDING)
    plain, text = verdict.plain(), str(verdict)

    assert isinstance(verdict, batchlab.Equivalence)
    assert plain["equivalent"] is False
    assert plain["examples"] == 8
    assert {"cut", "workers", "norm_ratio", "relative_error", "cosine", "worst_layer", "causes"} <= plain["rows"][
        0
    ].keys()
    assert plain["causes"][0]["name"] == "mean of means"
    assert text.splitlines()[0].startswith("NOT equivalent: 5 of 6 ways to cut a batch of 8 examples")
    assert "Norm ratio  Relative error" in text.splitlines()[1]
    assert verdict.worst.cut == "8 x 1"
    assert "no more padding than needed" in text


def test_a_model_that_shares_weights_is_compared_once():
    model = LanguageModel()
    model.head = nn.Linear(8, loops.VOCABULARY, bias=False)
    model.head.weight = model.embedding.weight

    assert equivalence(loops.right_alone, sentences(*EIGHT), model).is_equivalent
    assert model.head.weight is model.embedding.weight


def test_frozen_parameters_are_left_out():
    model = LanguageModel()
    model.embedding.weight.requires_grad_(False)
    before = copy.deepcopy(model.embedding.weight)

    assert equivalence(loops.right_alone, sentences(*EIGHT), model).is_equivalent
    assert torch.equal(model.embedding.weight, before)


def test_half_precision_is_computed_in_double():
    model = LanguageModel().bfloat16()

    verdict = equivalence(loops.right_alone, sentences(*EIGHT), model)

    assert verdict.precision == "float64"
    assert verdict.is_equivalent
    assert model.head.weight.dtype == torch.bfloat16


def test_a_step_may_change_its_microbatches_in_place():
    def step(model, microbatches):
        for inputs in microbatches:
            inputs.mul_(2)
            (model(inputs).pow(2).sum() / 6).backward()

    batch = torch.randn(6, 3)
    before = batch.clone()

    assert equivalence(step, batch, nn.Linear(3, 1)).is_equivalent
    assert torch.equal(batch, before)


def test_sparse_gradients_are_compared():
    model = nn.Sequential(nn.Embedding(7, 4, sparse=True), nn.Linear(4, 1))

    def step(model, microbatches):
        for tokens in microbatches:
            (model(tokens).pow(2).sum() / 8).backward()

    assert equivalence(step, torch.arange(8) % 7, model).is_equivalent


def test_what_autocast_computes_in_half_precision_is_computed_in_double():
    def step(model, microbatches):
        with torch.autocast("cpu", torch.bfloat16):
            loops.right_alone(model, microbatches)

    verdict = equivalence(step, sentences(*EIGHT), LanguageModel())

    assert verdict.precision == "float64"
    assert verdict.worst.comparison.relative_error < 1e-12


class Complex(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 1, dtype=torch.complex64))

    def forward(self, inputs):
        return inputs.to(self.weight.dtype) @ self.weight


def test_a_mistake_in_the_imaginary_part_of_a_gradient_is_found():
    def step(model, microbatches):
        for inputs in microbatches:
            outputs = model(inputs)
            (outputs.real.pow(2).sum() / 8 + outputs.imag.pow(2).mean()).backward()

    verdict = equivalence(step, torch.randn(8, 4), Complex())

    assert verdict.precision == "float64"
    assert not verdict.is_equivalent


def only_the_first(model, microbatches):
    model(microbatches[0]).pow(2).mean().backward()


def its_own_batch(model, microbatches):
    model(torch.ones(2, 3, dtype=model.weight.dtype)).pow(2).mean().backward()


@pytest.mark.parametrize(
    ("step", "batch"), [(only_the_first, torch.ones(8, 3)), (its_own_batch, torch.randn(8, 3))], ids=["alike", "unused"]
)
def test_a_batch_that_cannot_show_a_mistake_is_refused(step, batch):
    with pytest.raises(InputError, match="no mistake can show: give a batch of different examples"):
        equivalence(step, batch, nn.Linear(3, 1))


def test_a_batch_of_examples_alike_shows_enough_where_losses_are_added_up():
    def step(model, microbatches):
        for inputs in microbatches:
            (model(inputs).pow(2).sum() / 8).backward()

    assert equivalence(step, torch.ones(8, 3), nn.Linear(3, 1)).is_equivalent


def test_a_step_that_makes_its_model_coarser_is_judged_as_that():
    def step(model, microbatches):
        model.bfloat16()
        for inputs in microbatches:
            (model(inputs.bfloat16()).pow(2).sum() / 8).backward()

    model = nn.Linear(3, 1)
    verdict = equivalence(step, torch.randn(8, 3), model)

    assert (verdict.precision, verdict.tolerance) == ("bfloat16", 0.03)
    assert verdict.is_equivalent
    assert model.weight.dtype == torch.float32


def test_what_is_in_double_precision_already_is_as_it_was_after_a_check():
    def step(model, microbatches):
        model.count += len(microbatches)
        loops.right_alone(model, microbatches)

    model = LanguageModel()
    model.register_buffer("count", torch.zeros(1, dtype=torch.float64))
    equivalence(step, sentences(*EIGHT), model)

    assert model.count == 0


class Encoding(UserDict):
    """A batch as Hugging Face's tokenizers return it."""


def test_a_mapping_of_another_kind_stays_what_it_is():
    def step(model, microbatches):
        assert all(type(each) is Encoding for each in microbatches)
        loops.right_alone(model, microbatches)

    batch = Encoding(sentences(*EIGHT))

    assert equivalence(step, batch, LanguageModel(), padding=PADDING).is_equivalent
    assert len(batch["tokens"]) == 8


@pytest.mark.parametrize("cuts", [[np.array([3, 5])], [torch.tensor([3, 5]).tolist()], ([(3,), (5,)],)])
def test_sizes_may_be_written_in_many_ways(cuts):
    assert equivalence(loops.right, sentences(*EIGHT), LanguageModel(), cuts=cuts).is_equivalent


class CallableStep:
    def __call__(self, model, microbatches, worker, scale=1.0):
        loops.right(model, microbatches, worker)


@pytest.mark.parametrize(
    "step", [CallableStep(), partial(loops.right), lambda *arguments: loops.right_alone(*arguments)]
)
def test_a_step_may_be_anything_that_can_be_called(step):
    assert equivalence(step, sentences(*EIGHT), LanguageModel()).is_equivalent


class Balanced(nn.Module):
    """Two experts whose shares are balanced by a loss of the whole batch while they train; nothing is dropped."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.experts = nn.Linear(4, 2), nn.ModuleList([nn.Linear(4, 3), nn.Linear(4, 3)])
        self.balance: Tensor | float = 0.0

    def forward(self, inputs: Tensor) -> Tensor:
        shares = self.gate(inputs).softmax(1)
        self.balance = (shares.mean(0) ** 2).sum() if self.training else 0.0
        return sum(shares[:, i : i + 1] * expert(inputs) for i, expert in enumerate(self.experts))


def test_what_vanishes_in_evaluation_and_draws_nothing_is_no_dropout():
    torch.manual_seed(0)

    def step(model, microbatches):
        number = sum(map(len, microbatches))
        for each in microbatches:
            ((model(each).tanh().mean() + model.balance) * len(each) / number).backward()

    verdict = equivalence(step, torch.randn(8, 4), Balanced(), allow=["dropout"])

    assert [str(each) for each in verdict.causes] == ["coupled examples"]
    assert not verdict.is_equivalent


def test_workers_on_which_the_step_never_ran_leave_it_open():
    def step(model, microbatches, worker):
        if worker.num_workers > 1:
            raise RuntimeError("not on several")
        loops.right_alone(model, microbatches)

    verdict = equivalence(step, sentences(*EIGHT), LanguageModel(), workers=[1, 2])

    assert not verdict.is_equivalent
    assert str(verdict).startswith("NOT known: the step cannot be run on 2 workers; on others its gradient is right")


def test_a_loss_that_is_summed_over_workers_before_its_backward_pass_is_too_small():
    def step(model, microbatches, worker):
        number = worker.sum(sum(map(len, microbatches)))
        for each in microbatches:
            (worker.sum(model(each).tanh().sum()) / number).backward()

    verdict = equivalence(step, torch.randn(8, 4), nn.Linear(4, 1), workers=[1, 2])

    assert [row.comparison.norm_ratio for row in verdict.rows if row.num_workers == 2] == pytest.approx([0.5, 0.5])
    assert [str(each) for each in verdict.causes] == ["factor"]


def test_gradients_are_exchanged_once_however_many_parameters_there_are():
    counts = []

    for number in (1, 10):
        runs = []

        def step(model, microbatches, worker, runs=runs):
            runs.append(1)
            number = worker.sum(sum(map(len, microbatches)))
            for each in microbatches:
                (model(each).tanh().sum() / number * worker.num_workers).backward()
            worker.average_gradients(model)

        layers = [nn.Linear(4, 4) for _ in range(number)]
        assert equivalence(step, torch.randn(8, 4), nn.Sequential(*layers)).is_equivalent
        counts.append(len(runs))

    assert counts[0] == counts[1]
