"""How fast one trial trains on several workers, against plain DistributedDataParallel for the same model and batch.

    python benchmarks/data_parallel.py [--workers 2] [--batch-sizes 128 1024] [--turns 9] [--out FILE.json]

Both sides live in the same processes, joined by gloo and started as a study starts its workers: one thread each, and
freed memory is kept. They take turns: the medians of the turns count, and the median of the ratios of neighbouring
turns. The plain loop keeps its examples in memory, gathers its part of each batch by index, has the same module,
wrapped, and the fused SGD with Nesterov momentum. Images and sentences are noise of the sizes of CIFAR-10 and of
LM1B's. Run it on a machine with nothing else to do.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as processes
import torch.nn.functional as F
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from batchlab.core.sweep import Sweep
from batchlab.core.workload import Named
from batchlab.data.base import Dataset, Examples
from batchlab.engine.base import Point
from batchlab.engine.gang.exchange import Distributed
from batchlab.engine.gang.group import meet
from batchlab.engine.torch_trainer import TorchTrainer
from batchlab.models.registry import build_model
from batchlab.run.environment import environment
from batchlab.run.executors.worker import worker_environment

METAPARAMETERS = {"learning_rate": 1e-3, "momentum": 0.9}
NUM_EXAMPLES = 4096
WORDS, TOKENS = 2000, 32
TRANSFORMER = {"name": "transformer_narrow_and_shallow", "layers": 2, "width": 128, "feed_forward": 512, "heads": 4}


@dataclass(frozen=True)
class Case:
    """A model and what it reads."""

    name: str
    model: dict[str, Any]

    @property
    def reads_tokens(self) -> bool:
        return self.name == "Transformer"

    def dataset(self) -> Dataset:
        """Return examples that are noise."""
        draw = np.random.default_rng(0)
        if self.reads_tokens:
            tokens = draw.integers(1, WORDS, (NUM_EXAMPLES, TOKENS)).astype(np.int32)
            examples = Examples(tokens, tokens)
            return Dataset(
                "noise", examples, examples.at(slice(0, 100)), examples.at(slice(0, 100)), WORDS, "language_model"
            )
        images = draw.normal(size=(NUM_EXAMPLES, 3, 32, 32)).astype(np.float32)
        examples = Examples(images, draw.integers(10, size=NUM_EXAMPLES))
        return Dataset("noise", examples, examples.at(slice(0, 100)), examples.at(slice(0, 100)), 10)


CASES = (Case("ResNet-8", {"name": "resnet_8"}), Case("Transformer", TRANSFORMER))


class PlainLoop:
    """The loop that ours is measured against."""

    def __init__(self, case: Case, dataset: Dataset, batch_size: int) -> None:
        self.part, self.reads_tokens = batch_size // dist.get_world_size(), case.reads_tokens
        self.inputs, self.labels = (torch.from_numpy(each) for each in (dataset.train.inputs, dataset.train.labels))
        model = build_model(Named(**case.model), dataset.input_shape, dataset.num_classes)
        model.start(np.random.default_rng(0))
        self.model = DistributedDataParallel(model)
        rate, momentum = METAPARAMETERS["learning_rate"], METAPARAMETERS["momentum"]
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=rate, momentum=momentum, nesterov=True, fused=True)

    def train(self, num_steps: int) -> None:
        for _ in range(num_steps):
            batch = torch.randint(len(self.labels), (self.part,))
            loss = self.loss(self.model(self.inputs[batch]), self.labels[batch])
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        if self.reads_tokens:
            return F.cross_entropy(logits.flatten(0, 1), labels.flatten().long())
        return F.cross_entropy(logits, labels)


class OurLoop:
    """One trial on several workers, as a study trains it."""

    def __init__(self, case: Case, dataset: Dataset, batch_size: int, exchange: Distributed) -> None:
        spec: dict[str, Any] = {
            "name": "benchmark",
            "workload": {"dataset": "noise", "model": case.model, "optimizer": "nesterov_momentum"},
            "sweep": {
                "batch_sizes": [batch_size],
                "trials": 1,
                "max_steps": 10**9,
                "goal": "val/cross_entropy_error <= 0",
            },
            "search_space": {name: {"values": [value]} for name, value in METAPARAMETERS.items()},
        }
        trainer = TorchTrainer(dataset, "cpu")
        trainer.join(exchange)
        self.program = trainer.program(Sweep.parse(spec, "benchmark").study(batch_size), [Point(0, METAPARAMETERS)])

    def train(self, num_steps: int) -> None:
        target = self.program.step + num_steps
        while self.program.step < target:
            self.program.advance(target)


def seconds_per_step(loop: PlainLoop | OurLoop, num_steps: int) -> float:
    dist.barrier()
    started = time.perf_counter()
    loop.train(num_steps)
    dist.barrier()
    return (time.perf_counter() - started) / num_steps


def compare(case: Case, batch_size: int, turns: int, examples: int, exchange: Distributed) -> dict[str, Any]:
    """Return the seconds of a step of each side, turn by turn."""
    dataset, num_steps = case.dataset(), max(1, examples // batch_size)
    loops = {"plain": PlainLoop(case, dataset, batch_size), "ours": OurLoop(case, dataset, batch_size, exchange)}
    for loop in loops.values():
        loop.train(2)
    found: dict[str, list[float]] = {name: [] for name in loops}
    for turn in range(turns):
        for name in list(loops)[:: 1 if turn % 2 else -1]:  # neither side always comes first
            found[name].append(seconds_per_step(loops[name], num_steps))
    return {
        "model": case.name,
        "batch_size": batch_size,
        "seconds_per_step": found,
        "speed": statistics.median(plain / ours for plain, ours in zip(found["plain"], found["ours"], strict=True)),
    }


def work(rank: int, place: str, options: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    exchange = meet(place, rank, options.workers, "cpu", lambda: None)
    results = []
    for case in CASES:
        for batch_size in options.batch_sizes:
            results.append(compare(case, batch_size, options.turns, options.examples, exchange))
            if rank == 0:
                print(told(results[-1]), flush=True)
    if rank == 0:
        facts = {"environment": environment(), "workers": options.workers, "turns": options.turns, "results": results}
        options.out.write_text(json.dumps(facts, indent=1) + "\n")
    dist.destroy_process_group()


def told(result: dict[str, Any]) -> str:
    medians = {name: statistics.median(times) for name, times in result["seconds_per_step"].items()}
    speeds = {name: result["batch_size"] / seconds for name, seconds in medians.items()}
    return (
        f"{result['model']}, batch size {result['batch_size']}: ours {speeds['ours']:,.0f}, DistributedDataParallel "
        f"{speeds['plain']:,.0f} examples/s, medians of {len(result['seconds_per_step']['ours'])} turns: "
        f"{result['speed']:.0%} of its speed"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[128, 1024])
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--examples", type=int, default=8192, help="of each side in a turn, about")
    parser.add_argument("--out", type=Path, default=Path("data_parallel.json"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, worker_environment():
        processes.spawn(work, (str(Path(folder) / "store"), options), options.workers)


if __name__ == "__main__":
    main()
