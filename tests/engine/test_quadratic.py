"""The noisy quadratic model against closed forms and exact values that were worked out apart from this code."""

from __future__ import annotations

import numpy as np
import pytest

from batchlab.core.study import Study
from batchlab.core.sweep import Sweep
from batchlab.engine.base import LOSS_BOUND, Point
from batchlab.engine.quadratic import LONGEST_ADVANCE, QuadraticProgram, QuadraticTrainer, jump
from batchlab.errors import SpecError

CURVATURE = 1 / np.arange(1, 101)
FAR = 300_000  # updates after which every coordinate of these workloads is at its steady state


def make_study(
    names, batch_size=4, optimizer="sgd", schedule="constant", dataset="nqm", model="quadratic", splits=("val",)
):
    data = {
        "name": "test",
        "workload": {"dataset": dataset, "model": model, "optimizer": optimizer, "schedule": schedule},
        "sweep": {
            "batch_sizes": [batch_size],
            "trials": 1,
            "max_steps": 100,
            "goal": "val/risk <= 0.05",
            "evaluate": {"growth": 1.03, "splits": list(splits)},
        },
        "search_space": {name: {"values": [0.0]} for name in names},
    }
    return Sweep.parse(data, "test").study(batch_size)


def make_points(columns):
    columns = dict(zip(columns, np.broadcast_arrays(*columns.values()), strict=True))
    num_trials = next(iter(columns.values())).size
    return [Point(i, {name: float(column.flat[i]) for name, column in columns.items()}) for i in range(num_trials)]


def make_program(columns, state=None, **workload) -> QuadraticProgram:
    return QuadraticTrainer().program(make_study(columns, **workload), make_points(columns), state)


def risk_at(program, step):
    while program.step < step:
        program.advance(step)
    return program.evaluate()["val/risk"]


def risks(columns, steps, **workload):
    program = make_program({name: [value] for name, value in columns.items()}, **workload)
    return [risk_at(program, step).item() for step in steps]


# Golden values


@pytest.mark.parametrize(
    ("columns", "optimizer", "golden"),
    [
        (
            {"learning_rate": 0.5},
            "sgd",
            {0: 2.5936887588, 1: 1.9775409807, 10: 1.0222866025, 100: 0.2807297137, FAR: 0.1779228779},
        ),
        (
            {"learning_rate": 0.1, "momentum": 0.9},
            "momentum",
            {0: 2.5936887588, 1: 2.4382441357, 10: 1.2541780092, 100: 0.3452785970, FAR: 0.3269535037},
        ),
        (
            {"learning_rate": 0.5, "ema_decay": 0.9},
            "sgd",
            {0: 2.5936887588, 10: 1.4876649095, 100: 0.2161839009, FAR: 0.0953191729},
        ),
    ],
)
def test_risks_are_the_golden_values(columns, optimizer, golden):
    assert list(golden.values()) == pytest.approx(risks(columns, golden, optimizer=optimizer), abs=6e-11)


NEVER = None
STEPS_TO_RISK = {  # batch size -> first step with risk <= 0.05 at the learning rates 0.03, 0.1, 0.3, 1.0, 1.8
    1: (4337, NEVER, NEVER, NEVER, NEVER),
    4: (2756, 1133, NEVER, NEVER, NEVER),
    16: (2568, 814, 334, NEVER, NEVER),
    64: (2526, 768, 266, 100, NEVER),
    256: (2516, 757, 255, 80, 56),
    1024: (2513, 755, 252, 76, 44),
    4096: (2513, 754, 251, 76, 42),
}


@pytest.mark.parametrize(("batch_size", "expected"), STEPS_TO_RISK.items())
def test_steps_to_risk_are_the_golden_table(batch_size, expected):
    for learning_rate, steps in zip((0.03, 0.1, 0.3, 1.0, 1.8), expected, strict=True):
        # Every coordinate falls (its steady state is below its start), so the risk crosses the goal once.
        around = [steps - 1, steps] if steps else [5000, FAR]
        met = [risk <= 0.05 for risk in risks({"learning_rate": learning_rate}, around, batch_size=batch_size)]

        assert met == ([False, True] if steps else [False, False])


@pytest.mark.parametrize(
    ("batch_size", "steps", "learning_rate"),
    [
        (1, 4335, 0.0295),
        (4, 1099, 0.115),
        (16, 292, 0.412),
        (64, 95, 1.163),
        (256, 54, 1.63),
        (1024, 44, 1.80),
        (4096, 41, 1.85),
        (1_000_000, 39, 1.91),
    ],
)
def test_best_constant_learning_rate_takes_the_golden_number_of_steps(batch_size, steps, learning_rate):
    rates = np.geomspace(1e-4, 1.999, 1500)
    program = make_program({"learning_rate": rates}, batch_size=batch_size)

    assert risk_at(program, steps - 1).min() > 0.05
    assert rates[program.trial_ids][risk_at(program, steps) <= 0.05][0] == pytest.approx(learning_rate, rel=5e-3)


@pytest.mark.parametrize(
    ("columns", "optimizer", "golden"),  # golden: batch size -> steps, over a grid of 90 learning rates
    [
        ({"momentum": 0.5}, "momentum", {64: 74, 4096: 14}),
        ({"momentum": 0.9}, "momentum", {64: 64, 4096: 29}),
        ({"momentum": 0.95}, "momentum", {64: 88, 4096: 60}),
        ({"preconditioner_power": 0.0}, "sgd", {64: 95, 4096: 41}),
        ({"preconditioner_power": 0.5}, "sgd", {64: 31, 4096: 6}),
        ({"preconditioner_power": 1.0}, "sgd", {64: 27, 4096: 1}),
    ],
)
def test_momentum_and_preconditioning_cut_the_steps_as_in_the_golden_tables(columns, optimizer, golden):
    rates = np.geomspace(1e-4, 1.999 * (1 + columns.get("momentum", 0)), 90)
    for batch_size, steps in golden.items():
        program = make_program({"learning_rate": rates, **columns}, batch_size=batch_size, optimizer=optimizer)
        slack = round(0.05 * steps)  # "90-point grids within 5%"

        assert risk_at(program, steps - slack - 1).min() > 0.05
        assert risk_at(program, steps + slack).min() <= 0.05


def test_averaging_helps_at_small_batches_and_not_at_large_ones():
    rates, decays = np.meshgrid(np.geomspace(0.01, 1.999, 60), [0, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99])
    for batch_size, steps in {16: 94, 64: 54, 4096: 41}.items():
        program = make_program({"learning_rate": rates, "ema_decay": decays}, batch_size=batch_size)
        slack = round(0.05 * steps)

        assert risk_at(program, steps - slack - 1).min() > 0.05
        assert risk_at(program, steps + slack).min() <= 0.05


def test_dimension_is_an_option_of_the_dataset():
    dataset = {"name": "nqm", "dimension": 10_000}

    assert risks({"learning_rate": 0.1}, [0], dataset=dataset) == pytest.approx([4.8938], abs=5e-5)


# Closed forms


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("rate", [0.02, 0.5, 1.9])
def test_sgd_follows_its_closed_form(rate, power):
    h, noise = CURVATURE ** (1 - power), CURVATURE ** (1 - 2 * power) / 4
    r, steady = (1 - rate * h) ** 2, rate * noise / (h * (2 - rate * h))
    steps = [1, 2, 7, 100, 2345]
    expected = [0.5 * np.sum(CURVATURE * (r**t + (1 - r**t) * steady)) for t in steps]

    assert expected == pytest.approx(
        risks({"learning_rate": rate, "preconditioner_power": power}, steps), rel=1e-12, abs=0
    )


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_steady_risk_of_sgd_with_a_preconditioner(power):
    a, batch_size = 0.5, 16
    each = a * CURVATURE * CURVATURE**-power / (2 * batch_size * (2 - a * CURVATURE ** (1 - power)))
    columns = {"learning_rate": a, "preconditioner_power": power}

    assert risks(columns, [FAR], batch_size=batch_size) == pytest.approx([each.sum()], rel=1e-11)


def test_steady_risk_of_heavy_ball():
    a, b = 0.3, 0.8
    each = a * CURVATURE * (1 + b) / (2 * 4 * (1 - b) * (2 * (1 + b) - a * CURVATURE))

    assert risks({"learning_rate": a, "momentum": b}, [FAR], optimizer="momentum") == pytest.approx(
        [each.sum()], rel=1e-11
    )


def test_steady_risk_of_the_average():
    a, g = 0.7, 0.95
    p = 1 - a * CURVATURE
    variance = a * CURVATURE / (4 * CURVATURE * (2 - a * CURVATURE)) * (1 - g) / (1 + g) * (1 + g * p) / (1 - g * p)
    expected = 0.5 * np.sum(CURVATURE * variance)

    assert risks({"learning_rate": a, "ema_decay": g}, [FAR]) == pytest.approx([expected], rel=1e-11)


def test_heavy_ball_without_noise_follows_the_roots_of_its_polynomial():
    a, b, t = 0.9, 0.7, 23
    root = np.sqrt((1 - a * CURVATURE + b + 0j) ** 2 - 4 * b)
    r1, r2 = (1 - a * CURVATURE + b + root) / 2, (1 - a * CURVATURE + b - root) / 2
    amplitude = (r1 ** (t + 1) - r2 ** (t + 1) - b * (r1**t - r2**t)) / (r1 - r2)
    expected = 0.5 * np.sum(CURVATURE * amplitude.real**2)
    columns = {"learning_rate": a, "momentum": b}

    assert risks(columns, [t], optimizer="momentum", batch_size=10**15) == pytest.approx([expected], rel=1e-10)


def test_momentum_zero_is_sgd_and_no_averaging_reports_the_iterate():
    plain = risks({"learning_rate": 0.4}, [3, 50])

    assert plain == pytest.approx(
        risks({"learning_rate": 0.4, "momentum": 0.0}, [3, 50], optimizer="momentum"), rel=1e-12
    )
    assert plain == pytest.approx(risks({"learning_rate": 0.4, "ema_decay": 0.0}, [3, 50]), rel=1e-12)


def test_heavy_ball_with_an_average_agrees_with_sampled_runs():
    """The only check of the three-entry state: 20,000 sampled runs of the definition, one coordinate."""
    a, b, g, num_runs = 0.3, 0.6, 0.8, 20_000
    rng = np.random.default_rng(0)
    theta = z = np.ones(num_runs)
    velocity = np.zeros(num_runs)
    for _ in range(12):
        velocity = b * velocity + theta + rng.normal(scale=np.sqrt(1 / 4), size=num_runs)
        theta = theta - a * velocity
        z = g * z + (1 - g) * theta
    columns = {"learning_rate": a, "momentum": b, "ema_decay": g}
    exact = risks(columns, [12], optimizer="momentum", dataset={"name": "nqm", "dimension": 1})

    assert exact == pytest.approx([0.5 * np.mean(z**2)], rel=4 * np.std(z**2) / np.mean(z**2) / np.sqrt(num_runs))


# Jumps


@pytest.mark.parametrize("size", [1, 2, 3])
def test_one_jump_equals_single_updates(size):
    rng = np.random.default_rng(size)
    contraction = rng.normal(size=(5, 7, size, size))
    contraction *= (
        rng.uniform(0.5, 1.0, size=(5, 7, 1, 1)) / np.abs(np.linalg.eigvals(contraction)).max(-1)[..., None, None]
    )
    vector = rng.normal(size=(5, 7, size, 1))
    noise, start = vector @ vector.swapaxes(-1, -2), np.ones((5, 7, size, size))
    for num_steps in (1, 2, 3, 64, 89):
        walked = [start]
        for _ in range(num_steps):
            walked.append(contraction @ walked[-1] @ contraction.swapaxes(-1, -2) + noise)
        jumped, bound = jump(start, contraction, noise, num_steps)

        scale = np.abs(walked[-1]).max((-1, -2), keepdims=True)
        assert np.all(np.abs(jumped - walked[-1]) <= 1e-12 * scale)
        diagonals = np.diagonal(np.array(walked), axis1=-1, axis2=-2).max(0)
        assert np.all(diagonals <= np.diagonal(bound, axis1=-1, axis2=-2) * (1 + 1e-12))


def test_the_evaluation_grid_does_not_change_the_risk():
    columns = {"learning_rate": [0.01, 0.1, 1.0], "momentum": [0.99, 0.5, 0.9]}
    one, many = (make_program(columns, optimizer="momentum") for _ in range(2))
    for step in (1, 2, 3, 10, 77, 500, 501, 999):
        risk_at(many, step)

    assert risk_at(one, 1000) == pytest.approx(risk_at(many, 1000), rel=1e-11)


def test_a_long_advance_returns_early_at_a_step_that_depends_on_its_start():
    program = make_program({"learning_rate": [0.1]})
    program.advance(10)
    program.advance(1_000_000)

    assert program.step == 10 + LONGEST_ADVANCE


# The schedule


def test_linear_decay_is_the_recursion_step_by_step():
    columns = {"learning_rate": 0.8, "end_learning_rate_factor": 0.1, "learning_rate_decay_steps": 20}
    moment, expected = np.ones(100), []
    for t in range(30):
        a = 0.8 * (1 - 0.9 * t / 20) if t <= 20 else 0.08
        moment = (1 - a * CURVATURE) ** 2 * moment + a**2 * CURVATURE / 4
        expected.append(0.5 * np.sum(CURVATURE * moment))
    steps = [1, 2, 19, 20, 21, 30]

    assert [expected[step - 1] for step in steps] == pytest.approx(
        risks(columns, steps, schedule="linear_decay"), rel=1e-12
    )


def test_trials_of_one_pack_may_end_their_decay_at_different_steps():
    columns = {
        "learning_rate": [0.8, 0.8],
        "end_learning_rate_factor": [0.1, 0.5],
        "learning_rate_decay_steps": [20.0, 300.0],
    }
    together = make_program(columns, schedule="linear_decay")
    for step in (15, 40, 400):
        together_risk = risk_at(together, step)
        alone = [
            risks({name: column[i] for name, column in columns.items()}, [step], schedule="linear_decay")[0]
            for i in (0, 1)
        ]

        assert together_risk == pytest.approx(alone, rel=1e-12)


# Divergence


def test_learning_rate_of_two_over_the_largest_curvature_diverges():
    program = make_program({"learning_rate": [1.99, 2.01, 3.0]})
    risk_at(program, 2000)

    assert program.trial_ids.tolist() == [0]
    assert list(program.diverged) == [2, 1]


def test_at_the_edge_of_stability_the_variance_grows_without_end():
    """At a = 2/h nothing is forgotten, and every update adds a^2 c/B = 1."""
    exact = risks({"learning_rate": 2.0}, [4000], dataset={"name": "nqm", "dimension": 1})

    assert exact == pytest.approx([0.5 * (1 + 4000)])


def first_update_over_the_bound(rate):
    moment = np.ones(100)
    for step in range(1, 100_000):
        moment = (1 - rate * CURVATURE) ** 2 * moment + rate**2 * CURVATURE / 4
        if 0.5 * np.sum(CURVATURE * moment) > LOSS_BOUND:
            return step
    raise AssertionError


@pytest.mark.parametrize("stride", [1, 5, 64, 4000])
def test_the_update_that_diverges_does_not_depend_on_the_evaluation_grid(stride):
    rates = [2.001, 2.1, 30.0]
    program = make_program({"learning_rate": rates})
    while len(program.trial_ids):
        program.advance(program.step + stride)

    assert program.diverged == {i: first_update_over_the_bound(rate) for i, rate in enumerate(rates)}


@pytest.mark.parametrize("stride", [1, 100, 4096])
def test_an_explosion_that_would_calm_down_again_counts(stride):
    """A double root near -1: the noiseless amplitude is (1 + 2t) r^t, large for a while, though the map is stable."""
    b = 0.999
    a, r = (1 + b**0.5) ** 2, -(b**0.5)
    amplitude = np.array([r**t * (1 + t * (1 - r)) for t in range(40_000)])
    first = int(np.argmax(0.5 * amplitude**2 > LOSS_BOUND))
    program = make_program(
        {"learning_rate": [a], "momentum": [b]},
        optimizer="momentum",
        batch_size=10**12,
        dataset={"name": "nqm", "dimension": 1},
    )
    while program.step < 5000:
        program.advance(program.step + stride)

    assert 0.5 * amplitude[4096] ** 2 < LOSS_BOUND  # so a look at the end of the stride would miss it
    assert program.diverged == {0: first}


def test_absurd_learning_rates_diverge_at_the_first_update_without_a_warning():
    program = make_program({"learning_rate": [1e200, 0.1, 1e300], "momentum": [0.9] * 3}, optimizer="momentum")
    program.advance(50)

    assert program.diverged == {0: 1, 2: 1}
    assert program.trial_ids.tolist() == [1]


def test_a_program_without_live_trials_still_advances():
    program = make_program({"learning_rate": [50.0]})
    risk_at(program, 1000)

    assert program.step == 1000
    assert program.evaluate()["val/risk"].shape == (0,)


# The contract of a program


def test_a_pack_gives_the_bits_of_its_trials_alone():
    rng = np.random.default_rng(0)
    columns = {
        "learning_rate": rng.uniform(0.01, 3.0, 9),
        "momentum": rng.uniform(0, 0.99, 9),
        "ema_decay": np.full(9, 0.5),
    }
    together = make_program(columns, optimizer="momentum")
    for step in (1, 10, 300):
        risk_at(together, step)
    for i in range(9):
        alone = make_program({name: column[[i]] for name, column in columns.items()}, optimizer="momentum")
        for step in (1, 10, 300):
            risk_at(alone, step)

        assert alone.evaluate()["val/risk"].tolist() == risk_at(together, 300)[together.trial_ids == i].tolist()
        assert alone.diverged.get(0) == together.diverged.get(i)


def test_a_resumed_program_gives_the_same_bits():
    columns = {"learning_rate": [0.1, 2.5, 0.3, 4.0], "momentum": [0.9, 0.9, 0.99, 0.0]}
    whole = make_program(columns, optimizer="momentum")
    risk_at(whole, 40)
    state = {name: array.copy() for name, array in whole.state().items()}
    risk_at(whole, 90)
    resumed = make_program(columns, optimizer="momentum", state=state)

    assert resumed.step == 40
    assert risk_at(resumed, 90).tolist() == whole.evaluate()["val/risk"].tolist()
    assert resumed.diverged == whole.diverged
    assert resumed.trial_ids.tolist() == whole.trial_ids.tolist()


def test_a_state_is_a_snapshot():
    program = make_program({"learning_rate": [0.1, 3.0]})
    state = program.state()
    before = {name: array.copy() for name, array in state.items()}
    risk_at(program, 500)

    assert all(np.array_equal(before[name], state[name]) for name in before)


def test_trial_ids_ascend_whatever_the_order_of_the_points():
    study = make_study(["learning_rate"])
    points = [Point(7, {"learning_rate": 3.0}), Point(2, {"learning_rate": 0.1})]
    program = QuadraticTrainer().program(study, points)

    assert program.trial_ids.tolist() == [2, 7]
    program.advance(100)
    assert list(program.diverged) == [7]


def test_the_risk_is_the_same_on_every_split():
    study = make_study(["learning_rate"], splits=("train", "val", "test"))
    trainer = QuadraticTrainer()
    risks_of_splits = trainer.program(study, [Point(0, {"learning_rate": 0.1})]).evaluate()

    assert trainer.metrics(study) == ("train/risk", "val/risk", "test/risk") == tuple(risks_of_splits)
    assert len({risk.item() for risk in risks_of_splits.values()}) == 1


# Bad workloads


@pytest.mark.parametrize(
    ("names", "workload", "message"),
    [
        (["learning_rate"], {"optimizer": "lars"}, 'Unknown optimizer "lars". Known: momentum, sgd.'),
        (["learning_rate"], {"schedule": "linear"}, 'Unknown schedule "linear". Did you mean "linear_decay"?'),
        (["learning_rate"], {"model": "fc_128"}, 'Unknown model "fc_128". Known: quadratic.'),
        (["learning_rate"], {"model": {"name": "quadratic", "size": 3}}, 'Unknown model option "size".'),
        (["learning_rate"], {"dataset": {"name": "nqm", "dimention": 3}}, 'Did you mean "dimension"?'),
        (["learning_rate"], {"dataset": {"name": "nqm", "dimension": 0}}, "dimension = 0 is not a whole number"),
        (["learning_rate"], {"dataset": {"name": "nqm", "dimension": 2.5}}, "dimension = 2.5 is not a whole number"),
        (["learning_rate", "momentum"], {}, 'Unknown metaparameter "momentum".'),
        (
            ["learning_rate"],
            {"optimizer": "momentum"},
            "metaparameter `momentum` of nqm/quadratic/momentum has no value",
        ),
        ([], {}, "metaparameter `learning_rate` of nqm/quadratic/sgd has no value"),
        (
            ["learning_rate"],
            {"schedule": "linear_decay"},
            "metaparameter `end_learning_rate_factor` of nqm/quadratic/sgd has no value",
        ),
    ],
)
def test_a_workload_that_cannot_be_trained_is_refused(names, workload, message):
    study: Study = make_study(names, **workload)

    with pytest.raises(SpecError) as error:
        QuadraticTrainer().check(study)

    assert message in str(error.value)


def test_fixed_metaparameters_count_as_given():
    study = make_study([], optimizer={"name": "sgd", "learning_rate": 0.5})
    program = QuadraticTrainer().program(study, [Point(0, study.metaparameters({}))])

    assert risk_at(program, 10) == pytest.approx([1.0222866025])
