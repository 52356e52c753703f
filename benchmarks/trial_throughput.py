"""How many trial-steps per second batchlab trains, against the loop that a user would write.

    python benchmarks/trial_throughput.py [--data DIR] [--out FILE.json] [--skip-sweep] [--seconds 8]

Both sides train the same model on the same data with the same evaluation steps, one process on each core with
one thread, in turns, and the best of three turns counts. The user's loop is a DataLoader for each split, torch.nn
modules and torch.optim.SGD with Nesterov momentum. Then the whole digits sweep is timed to the same answer against
Optuna driving that loop, on equal points. Needs `pip install -e .[bench]`; MNIST is taken from --data or
$BATCHLAB_DATA.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import multiprocessing.connection
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from batchlab.analysis.answers.steps_to_result import steps_to_result
from batchlab.core.study import Study
from batchlab.core.sweep import Sweep
from batchlab.core.workload import Named
from batchlab.data import registry
from batchlab.data.base import Dataset
from batchlab.engine.base import Point
from batchlab.engine.loop import train
from batchlab.engine.pack_size import calibrate
from batchlab.engine.torch_trainer import TorchTrainer
from batchlab.run.environment import environment
from batchlab.run.executors.worker import worker_environment
from batchlab.run.run_sweep import run_sweep
from batchlab.search.samplers import draw_points
from batchlab.store.lab import Lab

TURNS = 3
HARMLESS = {"learning_rate": 1e-3, "momentum": 0.9}


@dataclass(frozen=True)
class Case:
    dataset: str
    model: str
    batch_size: int
    steps: int  # of one trial
    every: int  # steps between evaluations
    expected: float


CASES = [
    Case("digits", "fc_128", 2, 1000, 50, 10.0),
    Case("digits", "fc_128", 16, 500, 25, 8.0),
    Case("digits", "fc_128", 128, 200, 10, 4.0),
    Case("digits", "fc_128", 1024, 50, 5, 4.0),
    Case("mnist", "simple_cnn_base", 64, 200, 100, 1.15),
    Case("mnist", "simple_cnn_base", 1024, 20, 20, 1.25),
]


def make_sweep(case: Case) -> Sweep:
    return Sweep.parse(
        {
            "name": "benchmark",
            "workload": {"dataset": case.dataset, "model": case.model, "optimizer": "nesterov_momentum"},
            "sweep": {
                "batch_sizes": [case.batch_size],
                "trials": 128,
                "max_steps": case.steps,
                "goal": "val/classification_error <= 0",
                "evaluate": {"every": case.every},
            },
            "search_space": {name: {"values": [value]} for name, value in HARMLESS.items()},
        },
        "benchmark",
    )


# The loop that a user would write --------------------------------------------------------------------------


def users_model(name: str, dataset: Dataset) -> nn.Module:
    if name == "fc_128":
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, dataset.num_classes))
    return nn.Sequential(
        *[nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)],
        *[nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)],
        *[nn.Flatten(), nn.Linear(3136, 1024), nn.ReLU(), nn.Linear(1024, dataset.num_classes)],
    )


def users_trial(
    dataset: Dataset,
    model_name: str,
    batch_size: int,
    metaparameters: dict[str, float],
    is_evaluated: Callable[[int], bool],
    is_over: Callable[[int, float], bool],
) -> int:
    """Train one trial until `is_over(step, validation error)`; return the steps trained.

    Like batchlab's, it is evaluated before the first step too.
    """
    tensors = TensorDataset(torch.from_numpy(dataset.train.inputs), torch.from_numpy(dataset.train.labels))
    loader = DataLoader(tensors, batch_size=batch_size, shuffle=True, drop_last=True)
    val_tensors = TensorDataset(torch.from_numpy(dataset.val.inputs), torch.from_numpy(dataset.val.labels))
    val_loader = DataLoader(val_tensors, batch_size=512)
    model = users_model(model_name, dataset)
    optimizer = torch.optim.SGD(
        model.parameters(), lr=metaparameters["learning_rate"], momentum=metaparameters["momentum"], nesterov=True
    )

    def is_finished(step: int) -> bool:
        if not is_evaluated(step):
            return False
        with torch.no_grad():
            wrong = sum((model(inputs).argmax(1) != labels).sum().item() for inputs, labels in val_loader)
        return is_over(step, wrong / len(val_tensors))

    step = 0
    is_finished(step)
    while True:
        for inputs, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
            step += 1
            if is_finished(step):
                return step


def users_rate(dataset: Dataset, case: Case, seconds: float) -> float:
    """Return trial-steps per second of one process."""
    started, total = time.perf_counter(), 0
    while time.perf_counter() - started < seconds:
        end = started + seconds
        total += users_trial(
            dataset,
            case.model,
            case.batch_size,
            HARMLESS,
            lambda step: step % case.every == 0,
            lambda step, error, end=end: step >= case.steps or time.perf_counter() > end,
        )
    return total / (time.perf_counter() - started)


# batchlab --------------------------------------------------------------------------------------------------


def our_rate(trainer: TorchTrainer, study: Study, pack_size: int, seconds: float) -> float:
    """Return trial-steps per second of one process."""
    started, total = time.perf_counter(), 0
    while time.perf_counter() - started < seconds:
        program = trainer.program(study, [Point(trial_id, HARMLESS) for trial_id in range(pack_size)])
        for _ in train(program, study, lambda: study.max_steps):
            if time.perf_counter() - started > seconds:
                break
        total += program.step * pack_size
    return total / (time.perf_counter() - started)


# Side by side ----------------------------------------------------------------------------------------------


def serve(
    pipe: multiprocessing.connection.Connection, side: str, case: Case, data_dir: Path | None, seconds: float
) -> None:
    """Measure one side whenever asked to, until told to end."""
    torch.set_num_threads(1)
    dataset = registry.load(Named(name=case.dataset), data_dir)
    trainer, study = TorchTrainer(dataset), make_sweep(case).study(case.batch_size)
    pack_size = calibrate(trainer, study, HARMLESS)[0] if side == "batchlab" else 1
    pipe.send(pack_size)
    while pipe.recv():
        pipe.send(
            users_rate(dataset, case, seconds) if side == "user" else our_rate(trainer, study, pack_size, seconds)
        )


def start_side(side: str, *details: object) -> list[multiprocessing.connection.Connection]:
    """Start one process for each core, batchlab's as its runner starts them; they are ready when this returns."""
    context = multiprocessing.get_context("spawn")
    pipes = []
    with worker_environment() if side == "batchlab" else nullcontext():
        for _ in range(os.cpu_count() or 1):
            here, there = context.Pipe()
            context.Process(target=serve, args=(there, side, *details), daemon=True).start()
            pipes.append(here)
    return pipes


def measure(case: Case, data_dir: Path | None, seconds: float) -> dict[str, object]:
    pipes, pack_sizes = {}, {}
    for side in ("user", "batchlab"):
        pipes[side] = start_side(side, case, data_dir, seconds)
        pack_sizes[side] = [pipe.recv() for pipe in pipes[side]]
    rates: dict[str, list[float]] = {"user": [], "batchlab": []}
    for _ in range(TURNS):
        for side, seen in rates.items():
            for pipe in pipes[side]:
                pipe.send(True)
            seen.append(sum(pipe.recv() for pipe in pipes[side]))
    for pipe in [*pipes["user"], *pipes["batchlab"]]:
        pipe.send(False)
    user, ours = max(rates["user"]), max(rates["batchlab"])
    return {
        "workload": f"{case.dataset}/{case.model}/nesterov_momentum",
        "batch_size": case.batch_size,
        "pack_sizes": pack_sizes["batchlab"],
        "user_steps_per_second": user,
        "batchlab_steps_per_second": ours,
        "ratio": ours / user,
        "expected": case.expected,
        "all_rates": rates,
    }


# The whole digits sweep ------------------------------------------------------------------------------------

SWEEP_BUDGET = {"max_steps": 4000, "max_examples": 200_000}
"""Both sides get this budget: with the built-in study's, the Optuna side would take hours."""


def optuna_study(dataset: Dataset, study: Study, points: list[dict[str, float]]) -> int | None:
    """Return the fewest steps to the goal over the points; a trial ends at the goal or at its budget."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    evaluated = set(study.evaluation.steps(study.max_steps))
    search = optuna.create_study(sampler=optuna.samplers.QMCSampler(seed=0))
    for point in points:
        search.enqueue_trial(point)

    def objective(trial: optuna.Trial) -> float:
        point = {
            "learning_rate": trial.suggest_float("learning_rate", 1e-3, 10.0, log=True),
            "momentum": trial.suggest_float("momentum", 0.0, 0.999),
        }
        reached = []

        def is_over(step: int, error: float) -> bool:
            if study.goal.is_met(error):
                reached.append(step)
            return bool(reached) or step >= study.max_steps

        users_trial(dataset, "fc_128", study.batch_size, point, evaluated.__contains__, is_over)
        return reached[0] if reached else float("inf")

    search.optimize(objective, n_trials=len(points))
    return None if search.best_value == float("inf") else int(search.best_value)


def optuna_worker(
    queue: multiprocessing.Queue[int | None], answers: multiprocessing.Queue[tuple[int, int | None]], sweep: Sweep
) -> None:
    torch.set_num_threads(1)
    dataset = registry.load(Named(name="digits"), None)
    while (batch_size := queue.get()) is not None:
        study = sweep.study(batch_size)
        answers.put((batch_size, optuna_study(dataset, study, draw_points(study)[: study.trials])))


def time_optuna(sweep: Sweep) -> tuple[float, dict[int, int | None]]:
    context = multiprocessing.get_context("spawn")
    queue, answers = context.Queue(), context.Queue()
    num_workers = os.cpu_count() or 1
    started = time.perf_counter()
    for batch_size in [*reversed(sweep.search.batch_sizes), *[None] * num_workers]:
        queue.put(batch_size)
    workers = [context.Process(target=optuna_worker, args=(queue, answers, sweep)) for _ in range(num_workers)]
    for worker in workers:
        worker.start()
    steps = dict(answers.get() for _ in sweep.search.batch_sizes)
    for worker in workers:
        worker.join()
    return time.perf_counter() - started, dict(sorted(steps.items()))


def time_batchlab(sweep: Sweep) -> tuple[list[float], dict[int, int | None]]:
    """Return the seconds of a first run, which calibrates, and of a second one, and the steps to result."""
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        for lab in ("first", "second"):
            started = time.perf_counter()
            run_sweep(sweep, Path(folder) / lab)
            seconds.append(time.perf_counter() - started)
        results = Lab.open(Path(folder) / "second").results(sweep).results
    return seconds, {result.batch_size: steps_to_result(result, sweep.search.hardest_goal).steps for result in results}


def measure_sweep() -> dict[str, object]:
    from batchlab.spec.load import load_sweep

    # Steps to result need the bare race only: a larger factor and fresh seeds buy intervals, which Optuna has not.
    settings = {**SWEEP_BUDGET, "race_factor": 1}
    sweep = load_sweep("digits", [f"sweep.{name}={value}" for name, value in settings.items()])
    sweep = sweep.model_copy(update={"search": sweep.search.model_copy(update={"confirm": None})})
    (first_seconds, second_seconds), our_steps = time_batchlab(sweep)
    users_seconds, users_steps = time_optuna(sweep)
    return {
        "first_seconds": first_seconds,
        "second_seconds": second_seconds,
        "optuna_seconds": users_seconds,
        "first_ratio": users_seconds / first_seconds,
        "second_ratio": users_seconds / second_seconds,
        "expected": 20.0,
        "batchlab_steps": our_steps,
        "optuna_steps": users_steps,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="where the MNIST files lie")
    parser.add_argument("--out", type=Path, default=Path("trial_throughput.json"))
    parser.add_argument("--seconds", type=float, default=8.0, help="length of one turn")
    parser.add_argument("--skip-cases", action="store_true", help="only the comparison with Optuna")
    parser.add_argument("--skip-sweep", action="store_true", help="leave out the comparison with Optuna")
    options = parser.parse_args()
    results: dict[str, object] = {"environment": environment(), "cases": []}
    print(f"{'workload':40} {'B':>5} {'pack':>5} {'user/s':>10} {'batchlab/s':>11} {'ratio':>6} {'expected':>9}")
    for case in [] if options.skip_cases else CASES:
        row = measure(case, options.data, options.seconds)
        results["cases"].append(row)  # type: ignore[attr-defined]
        rates = f"{row['user_steps_per_second']:>10,.0f} {row['batchlab_steps_per_second']:>11,.0f}"
        pack_size = row["pack_sizes"][0]  # type: ignore[index]
        print(
            f"{row['workload']:40} {case.batch_size:>5} {pack_size:>5} {rates} {row['ratio']:>6.2f} {case.expected:>9}",
            flush=True,
        )
    if not options.skip_sweep:
        sweep = results["sweep"] = measure_sweep()
        ratios = f"{sweep['first_ratio']:.1f} and {sweep['second_ratio']:.1f} times"
        print(
            f"whole digits sweep: Optuna {sweep['optuna_seconds']:.0f} s; batchlab {sweep['first_seconds']:.1f} s the "
            f"first time, {sweep['second_seconds']:.1f} s once calibrated: {ratios} (expected {sweep['expected']})"
        )
    options.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
