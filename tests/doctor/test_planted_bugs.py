"""The doctor names the cause of each mistake, and no other."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from batchlab.doctor.causes import REMEDIES, Cause
from batchlab.doctor.equivalence import equivalence
from tests.doctor import loops
from tests.doctor.loops import EIGHT, PADDING, LanguageModel, sentences

SEVEN = {
    Cause.MEAN_OF_MEANS: (loops.mean_of_means, LanguageModel),
    Cause.FACTOR: (loops.factor_twice, LanguageModel),
    Cause.CLIPPING: (loops.clipped_each, LanguageModel),
    Cause.BATCH_NORM: (loops.right, lambda: LanguageModel(nn.BatchNorm1d(8))),
    Cause.DROPOUT: (loops.dropout_by_rank, lambda: LanguageModel(dropout=0.5)),
    Cause.DROPPED: (loops.ragged_dropped, LanguageModel),
    Cause.COUPLED: (loops.contrastive, LanguageModel),
}


@pytest.mark.parametrize(("cause", "bug"), SEVEN.items(), ids=list(SEVEN))
def test_each_of_seven_bugs_is_named_and_nothing_else(cause, bug):
    step, make_model = bug

    verdict = equivalence(step, sentences(*EIGHT), make_model())

    assert not verdict.is_equivalent
    assert verdict.causes == (cause,)
    assert {row.causes for row in verdict.rows if not row.is_equal} == {(cause,)}


@pytest.mark.parametrize(("cause", "bug"), SEVEN.items(), ids=list(SEVEN))
def test_each_of_seven_bugs_is_named_in_single_precision(cause, bug):
    """Where a step cannot be run in float64: this one asks for float32."""
    step, make_model = bug
    model = make_model()
    model.register_forward_pre_hook(lambda module, inputs: _refuse_double(module))

    cuts = [((4,), (4,))] if cause == Cause.DROPOUT else [(3, 5), (3, 3, 2)]

    verdict = equivalence(step, sentences(*EIGHT), model, cuts=cuts)

    assert verdict.precision == "float32"
    assert verdict.causes == (cause,)


def _refuse_double(module):
    if next(module.parameters()).dtype == torch.float64:
        raise RuntimeError("float32 only")


def run(step, model=None, **keywords):
    return equivalence(step, sentences(*EIGHT), model or LanguageModel(), **keywords)


def evidence(verdict, cause):
    return next(each.evidence for each in verdict.findings if each.cause == cause)


def test_a_mean_of_means_tells_the_right_weights():
    verdict = equivalence(loops.mean_of_means, sentences(4, 60), LanguageModel(), cuts=[(1, 1)])

    assert evidence(verdict, Cause.MEAN_OF_MEANS).endswith("they have the weights 0.0625, 0.9375")


def test_a_factor_tells_what_it_is_the_number_of():
    verdict = run(loops.factor_twice, cuts=[(2, 2, 2, 2)])

    assert evidence(verdict, Cause.FACTOR) == (
        "the gradient is 0.25 times the right one: 1 / 4, the number of microbatches"
    )
    assert verdict.rows[0].comparison.norm_ratio == pytest.approx(0.25, rel=1e-12)
    assert verdict.rows[0].comparison.cosine == pytest.approx(1, abs=1e-12)


def test_a_division_by_workers_that_ddp_does_itself_is_a_factor():
    def step(model, microbatches, worker):
        total = worker.sum(loops.num_tokens(microbatches))
        for microbatch in microbatches:
            (loops.token_loss(model, microbatch, "sum") / total).backward()

    verdict = run(step)

    assert verdict.causes == (Cause.FACTOR,)
    assert "1 / 4, the number of microbatches or workers" in evidence(verdict, Cause.FACTOR)
    assert all(row.is_equal == (row.num_workers == 1) for row in verdict.rows)


def test_tokens_of_one_worker_alone_are_a_mean_of_means_over_workers():
    verdict = run(loops.right_alone, workers=[1, 2])

    assert verdict.causes == (Cause.MEAN_OF_MEANS,)
    assert evidence(verdict, Cause.MEAN_OF_MEANS).startswith("each worker counts the same;")


def test_sums_of_means_are_a_mean_of_means_times_a_factor():
    def step(model, microbatches):
        for microbatch in microbatches:
            loops.token_loss(model, microbatch).backward()

    assert run(step).causes == (Cause.MEAN_OF_MEANS, Cause.FACTOR)


def test_examples_instead_of_tokens_are_a_mean_of_means():
    def step(model, microbatches):
        examples = sum(len(each["tokens"]) for each in microbatches)
        for microbatch in microbatches:
            (loops.token_loss(model, microbatch) * len(microbatch["tokens"]) / examples).backward()

    verdict = run(step, cuts=[(3, 5)])

    assert evidence(verdict, Cause.MEAN_OF_MEANS).startswith("each microbatch counts by its examples;")


def test_values_that_are_clipped_for_each_microbatch_are_clipping():
    def step(model, microbatches):
        total = loops.num_tokens(microbatches)
        for microbatch in microbatches:
            (loops.token_loss(model, microbatch, "sum") / total).backward()
            nn.utils.clip_grad_value_(model.parameters(), 0.01)

    assert run(step).causes == (Cause.CLIPPING,)


def test_clipping_of_each_worker_before_the_exchange_is_clipping():
    def step(model, microbatches, worker):
        loops.right(model, microbatches, worker)
        nn.utils.clip_grad_norm_(model.parameters(), 0.05)

    verdict = run(step)

    assert verdict.causes == (Cause.CLIPPING,)
    assert all(row.is_equal for row in verdict.rows if row.num_workers == 1)


def test_clipping_after_the_exchange_is_right():
    def step(model, microbatches, worker):
        loops.right(model, microbatches, worker)
        worker.average_gradients(model)
        nn.utils.clip_grad_norm_(model.parameters(), 0.05)

    assert run(step).is_equivalent


@pytest.mark.parametrize("bound", [0.05, 1e9])
def test_right_clipping_beside_another_mistake_is_not_accused(bound):
    def step(model, microbatches):
        loops.mean_of_means(model, microbatches)
        nn.utils.clip_grad_norm_(model.parameters(), bound)

    assert run(step).causes == (Cause.MEAN_OF_MEANS,)


@pytest.mark.parametrize(
    ("loop", "cause"), [(loops.mean_of_means, Cause.MEAN_OF_MEANS), (loops.ragged_dropped, Cause.DROPPED)]
)
def test_a_bound_that_only_parts_of_the_batch_reach_leads_nobody_astray(loop, cause):
    """Weights are found from the gradients of microbatches alone, which are longer than that of the whole."""
    lengths = []

    def step(model, microbatches):
        loop(model, microbatches)
        lengths.append(nn.utils.clip_grad_norm_(model.parameters(), bound).item())

    bound = 1e9
    run(step)
    bound = 1.01 * lengths[0]

    assert run(step).causes == (cause,)


def test_the_evidence_is_of_the_gradients_in_the_table():
    """Clipping that is no cause is not switched off in the numbers that are told."""

    def step(model, microbatches):
        loops.right_alone(model, microbatches)
        nn.utils.clip_grad_norm_(model.parameters(), 0.05)

    (row,) = run(step, LanguageModel(nn.BatchNorm1d(8)), cuts=[(4, 4)]).rows

    assert [finding.cause for finding in row.findings] == [Cause.BATCH_NORM]
    assert row.findings[0].evidence.endswith(f", else {row.comparison.relative_error:.2g}")


def test_weight_decay_by_hand_is_not_clipping():
    def step(model, microbatches):
        loops.mean_of_means(model, microbatches)
        for parameter in model.parameters():
            parameter.grad += 0.1 * parameter.detach()

    assert Cause.CLIPPING not in run(step).causes


def test_two_mistakes_are_both_named():
    verdict = run(loops.mean_of_means, LanguageModel(nn.BatchNorm1d(8)), cuts=[(4, 4)])

    assert verdict.causes == (Cause.MEAN_OF_MEANS, Cause.BATCH_NORM)


def test_a_step_that_calls_train_cannot_undo_an_experiment():
    def step(model, microbatches, worker):
        model.train()
        loops.right(model, microbatches, worker)

    model = LanguageModel(nn.BatchNorm1d(8), dropout=0.5).eval()

    assert set(run(step, model).causes) == {Cause.BATCH_NORM, Cause.DROPOUT}
    assert not any(module.training for module in model.modules())


def test_batch_normalisation_without_running_statistics_is_named():
    norm = nn.BatchNorm1d(8, affine=False, track_running_stats=False)

    assert run(loops.right, LanguageModel(norm)).causes == (Cause.BATCH_NORM,)
    assert norm.running_mean is None


class OwnNorm(nn.Module):
    """Normalises over the batch, and is no batch normalisation by its class."""

    def forward(self, inputs):
        return (inputs - inputs.mean(0, keepdim=True)) * 0.5


def test_a_layer_that_couples_examples_is_named():
    verdict = run(loops.right, LanguageModel(OwnNorm()))

    assert verdict.causes == (Cause.COUPLED,)
    assert "the output of layer `norm` (OwnNorm) for one example depends on the others" in evidence(
        verdict, Cause.COUPLED
    )


def test_a_root_of_a_mean_couples_examples_though_each_cut_is_a_weighted_sum():
    def step(model, microbatches):
        for microbatch in microbatches:
            (loops.token_loss(model, microbatch).sqrt() / len(microbatches)).backward()

    verdict = run(step)

    assert verdict.causes == (Cause.COUPLED,)
    assert "no layer makes one example depend on others: the loss does" in evidence(verdict, Cause.COUPLED)


def test_a_root_of_a_mean_is_told_from_weights_by_a_model_of_three_values():
    def step(model, microbatches):
        for inputs, targets in microbatches:
            (F.mse_loss(model(inputs), targets).sqrt() / len(microbatches)).backward()

    torch.manual_seed(0)

    verdict = equivalence(step, (torch.randn(8, 2), torch.randn(8, 1)), nn.Linear(2, 1))

    assert verdict.causes == (Cause.COUPLED,)


@pytest.mark.parametrize("lost", [1, 2])
def test_examples_that_a_loop_cuts_off_by_itself_are_dropped(lost):
    """It joins what it is given and cuts anew, in equal parts: what is left over is lost."""

    def step(model, microbatches):
        whole = {name: torch.cat([each[name] for each in microbatches]) for name in microbatches[0]}
        size = len(whole["tokens"]) // 3 if len(microbatches) > 1 else len(whole["tokens"])
        count = 3 if len(microbatches) > 1 else 1
        parts = [{name: each[k * size : (k + 1) * size] for name, each in whole.items()} for k in range(count)]
        loops.right_alone(model, parts)

    verdict = equivalence(step, sentences(*EIGHT[: 6 + lost]), LanguageModel(), cuts=[(3, 3 + lost)])

    assert evidence(verdict, Cause.DROPPED) == f"it is the gradient of the batch without its last {lost} examples"


def test_padding_that_counts_is_named():
    def step(model, microbatches):
        total = sum(each["labels"].numel() for each in microbatches)
        for microbatch in microbatches:
            (loops.token_loss(model, microbatch, "sum") / total).backward()

    verdict = run(step, padding=PADDING)

    assert verdict.causes == (Cause.PADDING,)


@pytest.mark.parametrize(
    ("model", "causes"),
    [
        (LanguageModel(), ()),
        (LanguageModel(nn.BatchNorm1d(8)), (Cause.BATCH_NORM,)),
        (LanguageModel(dropout=0.5), (Cause.DROPOUT,)),
    ],
    ids=["plain", "norm", "dropout"],
)
def test_other_padding_of_a_right_loop_has_no_cause_of_its_own(model, causes):
    assert run(loops.right_alone, model, padding=PADDING).causes == causes


def test_noise_that_is_no_dropout_is_randomness():
    def noisy(model, microbatches):
        for microbatch in microbatches:
            loops.mean_of_means(model, [microbatch])
            for parameter in model.parameters():
                parameter.grad += 0.1 * torch.randn_like(parameter)

    random = torch.Generator().manual_seed(0)

    def unseeded(model, microbatches):
        loops.right_alone(model, microbatches)
        for parameter in model.parameters():
            parameter.grad += 0.1 * torch.randn(parameter.shape, generator=random).to(parameter)

    assert "another seed" in evidence(run(noisy), Cause.RANDOMNESS)
    assert "the same seed" in evidence(run(unseeded), Cause.RANDOMNESS)


def test_a_microbatch_of_padding_alone_is_told():
    batch = sentences(4, 5, 6)
    batch["labels"][2] = loops.IGNORED

    def divided(model, microbatches):
        for each in microbatches:
            labels = each["labels"].flatten()
            losses = F.cross_entropy(model(each["tokens"]).flatten(0, 1), labels.clamp_min(0), reduction="none")
            ((losses * (labels >= 0)).sum() / (labels >= 0).sum() / len(microbatches)).backward()

    counted, infinite, right = (
        equivalence(step, batch, LanguageModel(), cuts=[(2, 1)])
        for step in (loops.mean_of_means, divided, loops.right_alone)
    )

    assert evidence(counted, Cause.MEAN_OF_MEANS).endswith("even example 3 without a loss")
    assert evidence(infinite, Cause.NOT_FINITE).endswith("neither is that of example 3 alone")
    assert infinite.plain()["rows"][0]["relative_error"] is None
    assert right.is_equivalent


def test_odd_weights_are_told():
    def step(model, microbatches):
        total = loops.num_tokens(microbatches)
        for index, microbatch in enumerate(microbatches):
            (loops.token_loss(model, microbatch, "sum") / total * 0.5**index).backward()

    verdict = run(step, cuts=[(4, 4)])

    assert verdict.causes == (Cause.WEIGHTS,)
    assert evidence(verdict, Cause.WEIGHTS).startswith("microbatches have the weights 0.4355, 0.2823;")


def test_a_cause_that_is_not_known_is_not_made_up():
    def step(model, microbatches):
        loops.right_alone(model, microbatches)
        if len(microbatches) > 1:
            model.head.weight.grad.fill_(1.0)

    verdict = run(step, cuts=[(4, 4)])

    assert not verdict.is_equivalent
    assert verdict.causes == ()
    assert verdict.rows[0].comparison.worst_layer == "head.weight"
    assert "A cause is not known" in str(verdict)


def test_every_cause_has_a_remedy():
    assert set(REMEDIES) == set(Cause)
