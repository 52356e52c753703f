"""Which sweeps make sense: each thing that is wrong gets one sentence with the value and the way out."""

from __future__ import annotations

import pytest

from batchlab.core.workload import Named
from batchlab.data import registry as data
from batchlab.engine.quadratic import QuadraticTrainer
from batchlab.engine.torch_trainer import TorchTrainer
from batchlab.errors import SpecError
from batchlab.run.trainers import make_trainer
from batchlab.spec.check import check_sweep


def test_a_sound_sweep_passes(make_digits, make_nqm):
    check_sweep(make_digits())
    check_sweep(make_nqm())


LINEAR_DECAY = {"name": "linear_decay", "end_learning_rate_factor": 0.1, "learning_rate_decay_steps": 50}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"workload.dataset": "digit"}, 'Unknown dataset "digit". Did you mean "digits"?'),
        ({"workload.model": "fc_many"}, 'Unknown model "fc_many"'),
        ({"workload.optimizer": "adan"}, 'Unknown optimizer "adan". Did you mean "adam"? Known: adam, adamw, momentum'),
        ({"workload.optimizer": "adam"}, 'Unknown metaparameter of digits/fc_128/adam "momentum". Known: beta_1'),
        ({"workload.schedule": "cosine"}, 'Unknown schedule "cosine"'),
        (
            {"search_space.momentun": {"values": [0.9]}},
            'Unknown metaparameter of digits/fc_128/nesterov_momentum "momentun". Did you mean "momentum"?',
        ),
        (
            {"workload.optimizer": "sgd"},
            'Unknown metaparameter of digits/fc_128/sgd "momentum". Known: label_smoothing, learning_rate.',
        ),
        (
            {"search_space": {"learning_rate": {"values": [0.1]}}},
            "metaparameter `momentum` of digits/fc_128/nesterov_momentum has no value: add it to [search_space].",
        ),
        (
            {"workload.schedule": {"name": "linear_decay", "end_learning_rate_factor": 0.1}},
            "metaparameter `learning_rate_decay_steps` of digits/fc_128/nesterov_momentum has no value",
        ),
        (
            {"sweep.batch_sizes": [16, 1298]},
            "batch size 1298 is larger than the training set of digits (1297 examples)",
        ),
        (
            {"workload.dataset": {"name": "digits", "train_examples": 15}},
            "batch size 64 is larger than the training set of digits (15 examples)",
        ),
        (
            {"at": {"16": {"search_space": {"momentum": {"values": [1.5]}}}}},
            "momentum = 1.5 must be at least 0 and below 1.",
        ),
        ({"search_space.momentum": {"min": 0.5, "max": 1.0}}, "momentum = 1.0 must be at least 0 and below 1."),
        (
            {"search_space.momentum": {"values": [0.5, 0.99999999]}},
            "momentum = 0.99999999 becomes 1 in float32, and must be at least 0 and below 1.",
        ),
        ({"search_space.momentum": {"values": [0.5, -0.1]}}, "momentum = -0.1 must be at least 0 and below 1."),
        ({"search_space.learning_rate": {"min": 0.0, "max": 1.0}}, "learning_rate = 0.0 must be above 0."),
        ({"search_space.learning_rate": {"values": [0.0]}}, "learning_rate = 0.0 must be above 0."),
        (
            {"search_space.momentum": {"min": 0.1, "max": 0.19, "unit": "decay_examples"}},
            "search_space.momentum: unit = decay_examples is for weight_decay, not momentum: use half_life_examples",
        ),
        (
            {"search_space.learning_rate": {"min": 0.01, "max": 1.0, "unit": "half_life_examples"}},
            "search_space.learning_rate: unit = half_life_examples is for momentum, beta_1, beta_2 and ema_decay",
        ),
        (
            {"search_space.label_smoothing": {"min": 10, "max": 1e3, "unit": "half_life_examples"}},
            "not label_smoothing: leave it out.",
        ),
        (
            {"search_space.momentum": {"min": 1e3, "max": 1e18, "unit": "half_life_examples"}},
            "1e+18 in half_life_examples is momentum = 1 at batch size 64, and must be at least 0 and below 1.",
        ),
        (
            {"workload.schedule": {**LINEAR_DECAY, "learning_rate_decay_steps": 0}},
            "learning_rate_decay_steps = 0 must be above 0.",
        ),
        (
            {"workload.schedule": {**LINEAR_DECAY, "end_learning_rate_factor": "small"}},
            "end_learning_rate_factor = 'small' must be at least 0.",
        ),
        (
            {"workload.schedule": {**LINEAR_DECAY, "end_learning_rate_factor": True}},
            "end_learning_rate_factor = True must be at least 0.",
        ),
        (
            {"sweep.goal": "test/classification_error < 0.1"},
            'goal: "test/classification_error" is not measured: add "test" to `sweep.evaluate.splits`.',
        ),
        (
            {"sweep.goal": "val/classification_error < -0.5"},
            "goal: val/classification_error < -0.5: no value meets it, val/classification_error is from 0 to 1.",
        ),
        (
            {"sweep.goal": "val/classification_error < 3"},
            "goal: val/classification_error < 3: every value meets it, val/classification_error is from 0 to 1.",
        ),
        (
            {"sweep.goal": "val/cross_entropy_error < 0"},
            "goal: val/cross_entropy_error < 0: no value meets it, val/cross_entropy_error is at least 0.",
        ),
        (
            {"sweep.goal": "val/clasification_error < 0.1"},
            'goal: Unknown metric "val/clasification_error". Did you mean "val/classification_error"?',
        ),
        ({"workload.model": "lstm"}, "model lstm reads tokens, but dataset digits holds images: change one."),
        (
            {"workload.dataset": "lm1b_sample"},
            "model fc_128 reads images, but dataset lm1b_sample holds tokens: change one.",
        ),
        (
            {"workload.model": "resnet_8"},
            'engine.pack_size = 4: trials of resnet_8 train one by one; use 1 or "auto".',
        ),
        (
            {"workload.model": "resnet_50", "engine": {"microbatch_size": 48}},
            'microbatch_size = 48: resnet_50 normalises 32 examples together; give a multiple of 32, or "auto".',
        ),
        (
            {"workload.model": {"name": "resnet_50", "ghost_size": 20}, "engine": {"microbatch_size": 32}},
            "microbatch_size = 32: resnet_50 normalises 20 examples together; give a multiple of 20",
        ),
    ],
)
def test_a_sweep_that_makes_no_sense_is_refused(make_digits, changes, message):
    with pytest.raises(SpecError) as caught:
        check_sweep(make_digits(changes))

    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"workload.model": "fc_128"}, 'Unknown model "fc_128". Known: quadratic.'),
        (
            {"workload.optimizer": "nesterov_momentum"},
            'Unknown optimizer "nesterov_momentum". Did you mean "momentum"?',
        ),
        ({"workload.dataset": {"name": "nqm", "dimensions": 3}}, 'Did you mean "dimension"?'),
        ({"workload.dataset": {"name": "nqm", "dimension": 0}}, "dimension = 0 of dataset nqm"),
        ({"workload.optimizer": "momentum"}, "metaparameter `momentum` of nqm/quadratic/momentum has no value"),
        ({"search_space.learning_rate": {"values": [0.0]}, "sweep.trials": 1}, "learning_rate = 0.0 must be above 0."),
        (
            {"search_space.ema_decay": {"min": 0.1, "max": 0.2, "points": 2, "unit": "linear_rule"}},
            "unit = linear_rule is for learning_rate, not ema_decay: use half_life_examples, or leave it out.",
        ),
        ({"sweep.goal": "val/classification_error < 0.1"}, "goal: Unknown metric"),
        ({"sweep.goal": "val/risk > -1"}, "every value meets it, val/risk is at least 0."),
        ({"search_space.learning_rate": {"min": 0.1, "max": 1.0}}, "the grid sampler needs `points`"),
    ],
)
def test_a_quadratic_sweep_that_makes_no_sense_is_refused(make_nqm, changes, message):
    with pytest.raises(SpecError) as caught:
        check_sweep(make_nqm(changes))

    assert message in str(caught.value)


def test_a_metaparameter_cannot_be_fixed_and_searched_at_once(make_digits):
    with pytest.raises(SpecError, match="`momentum` is both fixed in the workload and in the search space; drop one"):
        make_digits({"workload.optimizer": {"name": "nesterov_momentum", "momentum": 0.9}})


def test_a_fixed_metaparameter_needs_no_search(make_digits):
    fixed = {"name": "nesterov_momentum", "momentum": 0.9}

    check_sweep(make_digits({"workload.optimizer": fixed, "search_space": {"learning_rate": {"values": [0.1]}}}))


@pytest.mark.parametrize("pack_size", [1, "auto"])
def test_a_model_that_trains_one_by_one_needs_no_pack(make_digits, pack_size):
    check_sweep(make_digits({"workload.model": "resnet_8", "engine.pack_size": pack_size}))


@pytest.mark.parametrize("microbatch_size", [32, 64, 1000])
def test_microbatches_of_whole_ghosts_or_whole_batches_are_welcome(make_digits, microbatch_size):
    check_sweep(make_digits({"workload.model": "resnet_50", "engine": {"microbatch_size": microbatch_size}}))


def test_the_whole_training_set_may_be_the_batch(make_digits):
    check_sweep(make_digits({"sweep.batch_sizes": [1297]}))


def test_a_batch_larger_than_what_the_files_hold_is_refused(make_digits, monkeypatch):
    """Where the facts do not say how much that is, or say more."""
    digits = data.load(Named(name="digits"))
    monkeypatch.setattr(data, "load", lambda dataset, data_dir: digits.take(40))

    with pytest.raises(SpecError, match=r"^batch size 64 is larger than the training set of digits \(40 examples\)"):
        make_trainer(make_digits(), None)


def test_a_goal_on_a_split_that_is_evaluated_is_welcome(make_digits):
    evaluate = {"every": 10, "splits": ["train", "test"]}
    sweep = make_digits({"sweep.goal": "test/classification_error < 0.1", "sweep.evaluate": evaluate})

    check_sweep(sweep)

    assert set(make_trainer(sweep, None).metrics(sweep.studies()[0])) == {
        *("train/classification_error", "train/cross_entropy_error"),
        *("test/classification_error", "test/cross_entropy_error"),
    }


def test_a_workload_gets_its_trainer(make_digits, make_nqm):
    assert make_nqm().workload.is_closed_form
    assert isinstance(make_trainer(make_nqm(), None), QuadraticTrainer)
    assert not make_digits().workload.is_closed_form
    assert isinstance(make_trainer(make_digits(), None), TorchTrainer)


def test_an_exact_model_cannot_be_confirmed(make_nqm):
    with pytest.raises(SpecError, match="has no seeds"):
        check_sweep(make_nqm({"sweep.confirm": {"seeds": 6}}))
