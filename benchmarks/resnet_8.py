"""How fast ResNet-8 trains on CIFAR-10, against the plainest well-written PyTorch loop for it.

    python benchmarks/resnet_8.py --data DIR [--batch-sizes 128 1024] [--out FILE.json]

The loop keeps the images in memory as channels-last tensors, gathers a batch by index and uses the fused SGD. Both
train the same network with Nesterov momentum from the same kind of data, in one process that is started as a study
starts its workers: one thread, and freed memory is kept. They take turns, and the fastest turn of each counts: the
machine is shared, and noise only ever slows.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch
import torch.multiprocessing as processes
import torch.nn.functional as F
from torch import Tensor, nn

from batchlab.core.sweep import Sweep
from batchlab.core.workload import Named
from batchlab.data import registry
from batchlab.data.base import Dataset
from batchlab.engine.base import Point
from batchlab.engine.torch_trainer import TorchTrainer
from batchlab.run.environment import environment
from batchlab.run.executors.worker import worker_environment

METAPARAMETERS = {"learning_rate": 1e-3, "momentum": 0.9}
ROUNDS = 5


class Block(nn.Module):
    """A pre-activation residual block; the shortcut drops every other pixel and adds empty channels."""

    def __init__(self, num_inputs: int, num_outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(num_inputs, num_outputs, 3, stride, 1)
        self.second = nn.Conv2d(num_outputs, num_outputs, 3, 1, 1)
        self.stride, self.added = stride, num_outputs - num_inputs

    def forward(self, values: Tensor) -> Tensor:
        shortcut = values
        if self.added:
            shortcut = F.pad(values[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.added))
        return shortcut + self.second(F.relu(self.first(F.relu(values))))


class PlainResNet8(nn.Module):
    """ResNet-8 as anyone would write it."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, 1, 1)
        self.blocks = nn.Sequential(Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2))
        self.head = nn.Linear(64, 10)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(F.relu(self.blocks(self.stem(images))).mean((2, 3)))


class PlainLoop:
    """The loop that ours is measured against."""

    def __init__(self, dataset: Dataset, batch_size: int) -> None:
        self.batch_size = batch_size
        self.images = torch.from_numpy(dataset.train.inputs).contiguous(memory_format=torch.channels_last)
        self.labels = torch.from_numpy(dataset.train.labels)
        self.model = PlainResNet8().to(memory_format=torch.channels_last)
        rate, momentum = METAPARAMETERS["learning_rate"], METAPARAMETERS["momentum"]
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=rate, momentum=momentum, nesterov=True, fused=True)

    def train(self, num_steps: int) -> None:
        for _ in range(num_steps):
            batch = torch.randint(len(self.labels), (self.batch_size,))
            loss = F.cross_entropy(self.model(self.images[batch]), self.labels[batch])
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()


class OurLoop:
    """One trial, as a study trains it."""

    def __init__(self, dataset: Dataset, batch_size: int) -> None:
        spec: dict[str, Any] = {
            "name": "benchmark",
            "workload": {"dataset": "cifar_10", "model": "resnet_8", "optimizer": "nesterov_momentum"},
            "sweep": {
                "batch_sizes": [batch_size],
                "trials": 1,
                "max_steps": 10**6,
                "goal": "val/classification_error < 0.3",
            },
            "search_space": {name: {"values": [value]} for name, value in METAPARAMETERS.items()},
        }
        study = Sweep.parse(spec, "benchmark").study(batch_size)
        self.program = TorchTrainer(dataset, "cpu").program(study, [Point(0, METAPARAMETERS)])

    def train(self, num_steps: int) -> None:
        target = self.program.step + num_steps
        while self.program.step < target:
            self.program.advance(target)


def examples_per_second(loop: PlainLoop | OurLoop, batch_size: int, num_steps: int) -> float:
    started = time.perf_counter()
    loop.train(num_steps)
    return num_steps * batch_size / (time.perf_counter() - started)


def compare(dataset: Dataset, batch_size: int) -> dict[str, float]:
    loops = {"plain": PlainLoop(dataset, batch_size), "ours": OurLoop(dataset, batch_size)}
    num_steps = max(2, 4096 // batch_size)
    for loop in loops.values():
        loop.train(2)
    best = dict.fromkeys(loops, 0.0)
    for _ in range(ROUNDS):
        for name, loop in loops.items():
            best[name] = max(best[name], examples_per_second(loop, batch_size, num_steps))
    return best


def measure(rank: int, options: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    dataset = registry.load(Named(name="cifar_10"), options.data)
    results = {batch_size: compare(dataset, batch_size) for batch_size in options.batch_sizes}
    for batch_size, speeds in results.items():
        share = speeds["ours"] / speeds["plain"]
        print(f"B = {batch_size}: ours {speeds['ours']:,.0f}, plain {speeds['plain']:,.0f} examples/s: {share:.0%}")
    options.out.write_text(json.dumps({"environment": environment(), "examples_per_second": results}, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="where CIFAR-10 lies; else as for `batchlab run`")
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[128, 1024])
    parser.add_argument("--out", type=Path, default=Path("resnet_8.json"))
    options = parser.parse_args()
    with worker_environment():
        processes.spawn(measure, (options,))


if __name__ == "__main__":
    main()
