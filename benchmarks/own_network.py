"""How fast a network of one's own trains, against the loop that its owner would write.

    python benchmarks/own_network.py [--out FILE.json] [--seconds 2]

Small: a multilayer perceptron of the digits' size at batch size 16, packed by `torch.func`, against a DataLoader loop.
Large: a perceptron of 3.3 million weights, one trial, against a plain loop that gathers batches by index and uses the
fused optimizer. Then one update of the optimizers alone, beside PyTorch's fused ones, on 3.3 million weights.
All in one process that is started as a study starts its workers: one thread, and freed memory is kept. Both sides take
turns, and the fastest turn of each counts: the machine is shared, and noise only slows.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.multiprocessing as processes
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from batchlab.core.workload import Named
from batchlab.engine.base import Point
from batchlab.engine.pack_size import calibrate
from batchlab.optim.base import NowOfRow
from batchlab.optim.layout import Layout
from batchlab.optim.registry import load_optimizer
from batchlab.own.torch_sweep import TorchSweep
from batchlab.run.environment import environment
from batchlab.run.executors.worker import worker_environment

ROUNDS = 5
POINT = {"learning_rate": 1e-3, "momentum": 0.9}


def small() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))


def large() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 1600), nn.ReLU(), nn.Linear(1600, 1980), nn.ReLU(), nn.Linear(1980, 10))


def examples(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(count)
    return torch.randn(count, 64, generator=random), torch.randint(0, 10, (count,), generator=random)


def sweep_of(model: Callable[[], nn.Module], batch_size: int) -> TorchSweep:
    return TorchSweep(
        name="own",
        model=model,
        train=examples(1300),
        val=examples(250),
        loss=nn.functional.cross_entropy,
        optimizer="nesterov_momentum",
        batch_sizes=[batch_size],
        goal="val/loss < 0",
        trials=64,
        search_space={name: [value] for name, value in POINT.items()},
    )


def ours(model: Callable[[], nn.Module], batch_size: int, pack_size: int | None) -> Callable[[float], float]:
    """Return a function that trains for some seconds and gives the seconds of a trial-step."""
    own = sweep_of(model, batch_size)
    study = own.spec.study(batch_size)
    size = pack_size or calibrate(own.trainer, study, POINT)[0]
    program = own.trainer.program(study, [Point(trial, POINT) for trial in range(size)])
    print(f"  packs of {size}")

    def train(seconds: float) -> float:
        first, started = program.step, time.perf_counter()
        while time.perf_counter() - started < seconds:
            program.advance(program.step + 50)
        return (time.perf_counter() - started) / (program.step - first) / size

    return train


def dataloader_loop(model: Callable[[], nn.Module], batch_size: int) -> Callable[[float], float]:
    network, data = model(), TensorDataset(*examples(1300))
    loader = DataLoader(data, batch_size=batch_size, shuffle=True, drop_last=True)
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-3, momentum=0.9, nesterov=True)

    def train(seconds: float) -> float:
        step, started = 0, time.perf_counter()
        while time.perf_counter() - started < seconds:
            for inputs, labels in loader:
                optimizer.zero_grad()
                nn.functional.cross_entropy(network(inputs), labels).backward()
                optimizer.step()
                step += 1
        return (time.perf_counter() - started) / step

    return train


def plain_loop(model: Callable[[], nn.Module], batch_size: int) -> Callable[[float], float]:
    network, (inputs, labels) = model(), examples(1300)
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-3, momentum=0.9, nesterov=True, fused=True)

    def train(seconds: float) -> float:
        step, started = 0, time.perf_counter()
        while time.perf_counter() - started < seconds:
            batch = torch.randint(0, len(labels), (batch_size,))
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(inputs[batch]), labels[batch]).backward()
            optimizer.step()
            step += 1
        return (time.perf_counter() - started) / step

    return train


def update_of(name: str, values: dict[str, float], size: int = 3_300_000) -> Callable[[float], float]:
    optimizer = load_optimizer(Named(name=name), Layout(("weight",), ((size,),)))
    assert optimizer.update_row is not None
    row, gradient = torch.randn(size), torch.randn(size)
    state = {key: tensor[0] for key, tensor in optimizer.init(row.unsqueeze(0)).items()}

    def train(seconds: float) -> float:
        step, started = 0, time.perf_counter()
        while time.perf_counter() - started < seconds:
            step += 1
            optimizer.update_row(row, gradient, state, NowOfRow(step, values))
        return (time.perf_counter() - started) / step

    return train


def fused(
    make: Callable[[list[nn.Parameter]], torch.optim.Optimizer], size: int = 3_300_000
) -> Callable[[float], float]:
    parameter = nn.Parameter(torch.randn(size))
    parameter.grad = torch.randn(size)
    optimizer = make([parameter])

    def train(seconds: float) -> float:
        step, started = 0, time.perf_counter()
        while time.perf_counter() - started < seconds:
            step += 1
            optimizer.step()
        return (time.perf_counter() - started) / step

    return train


def compared(
    name: str, one: Callable[[float], float], other: Callable[[float], float], seconds: float
) -> dict[str, Any]:
    """Let both sides take turns; return the fastest turn of each in microseconds, and their ratio."""
    turns = [(one(seconds), other(seconds)) for _ in range(ROUNDS)]
    ours, theirs = (1e6 * min(side) for side in zip(*turns, strict=True))
    print(f"{name}: {ours:,.1f} us here, {theirs:,.1f} us there: {theirs / ours:.2f} times as fast")
    return {"name": name, "ours_us": ours, "theirs_us": theirs, "times_as_fast": theirs / ours}


def measure(rank: int, options: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    adam = {"learning_rate": 1e-3, "beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-8, "weight_decay": 0.01}
    cases = [
        ("small network, B = 16, DataLoader loop", ours(small, 16, None), dataloader_loop(small, 16)),
        ("3.3 million weights, B = 64, plain loop", ours(large, 64, 1), plain_loop(large, 64)),
        (
            "Nesterov, one update",
            update_of("nesterov_momentum", POINT),
            fused(lambda each: torch.optim.SGD(each, lr=1e-3, momentum=0.9, nesterov=True, fused=True)),
        ),
        (
            "AdamW, one update",
            update_of("adamw", adam),
            fused(lambda each: torch.optim.AdamW(each, lr=1e-3, weight_decay=0.01, fused=True)),
        ),
    ]
    results = [compared(name, one, other, options.seconds) for name, one, other in cases]
    if options.out:
        options.out.write_text(json.dumps({"environment": environment(), "results": results}, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    with worker_environment():
        processes.spawn(measure, (options,))


if __name__ == "__main__":
    main()
