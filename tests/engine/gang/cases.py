"""One trial on several processes, and what became of it there: cases for `test_exchange.py`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from torch import Tensor, nn

from batchlab.core.study import Study
from batchlab.core.sweep import Sweep
from batchlab.core.tokens import PADDING
from batchlab.engine.base import Point
from batchlab.engine.gang import buckets
from batchlab.engine.gang.exchange import Distributed, Exchange
from batchlab.engine.objectives import OBJECTIVES
from batchlab.engine.problem import Problem
from batchlab.engine.program import TorchProgram
from batchlab.engine.source import Split
from batchlab.models.ghost_norm import GhostNorm
from batchlab.models.lstm import Lstm
from batchlab.models.resnet_8 import ResNet8
from batchlab.models.resnet_50 import ResNet50
from batchlab.models.simple_cnn import SimpleCnn
from batchlab.models.transformer import Transformer

WORDS = 23


class Own(nn.Module):
    """Batch normalisation, dropout of units and of channels, and a layer that one of two paths leaves out."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm_0 = nn.Conv2d(1, 6, 3, padding=1), nn.BatchNorm2d(6)
        self.dense_0, self.norm_1 = nn.Linear(6 * 64, 20), nn.BatchNorm1d(20)
        self.dropout_0, self.dropout_1 = nn.Dropout2d(0.2), nn.Dropout(0.3)
        self.dense_1, self.unused = nn.Linear(20, 10), nn.Linear(2, 2)

    def forward(self, images: Tensor) -> Tensor:
        hidden = self.dropout_0(self.norm_0(self.conv(images)).relu()).flatten(1)
        return self.dense_1(self.dropout_1(self.norm_1(self.dense_0(hidden)).relu()))


class OwnGhosts(nn.Module):
    """Ghost norm in a module that is none of ours."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.dense = nn.Conv2d(1, 4, 3), GhostNorm(4, 2), nn.Linear(4 * 36, 10)

    def forward(self, images: Tensor) -> Tensor:
        return self.dense(self.norm(self.conv(images)).relu().flatten(1))


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "simple_cnn": lambda: SimpleCnn(input_shape=(1, 8, 8), num_classes=10, filters=(4, 6), hidden=16, dropout=0.4),
    "resnet_8": lambda: ResNet8((1, 8, 8), 10, (4, 6, 8)),
    "resnet_50": lambda: ResNet50((1, 8, 8), 10, (1, 1), 4, 4),
    "transformer": lambda: Transformer(7, WORDS, 1, 12, 16, 2),
    "lstm": lambda: Lstm(7, WORDS, 6, 8, 5),
    "own": Own,
    "own_ghosts": OwnGhosts,
}
RATES = {"resnet_50": 0.02, "lstm": 0.3}


def problem_of(network: str) -> Problem:
    """Return 96 digits that are noise, or sentences that end in padding, and a network."""
    draw, cpu = np.random.default_rng(5), torch.device("cpu")
    inputs = torch.from_numpy(draw.normal(size=(96, 1, 8, 8)).astype(np.float32))
    labels = torch.from_numpy(draw.integers(10, size=96))
    task: Any = "classification"
    if network in ("transformer", "lstm"):
        inputs = torch.from_numpy(draw.integers(1, WORDS, size=(96, 7)))
        lengths = torch.from_numpy(draw.integers(1, 8, size=96))
        inputs[torch.arange(7) >= lengths[:, None]] = PADDING
        labels, task = inputs, "language_model"
    split = Split(inputs, labels)
    return Problem(NETWORKS[network], OBJECTIVES[task], 10, split, {"val": split}, cpu)


def study_of(batch_size: int) -> Study:
    data = {
        "name": "test",
        "seed": 3,
        "workload": {"dataset": "digits", "model": "fc_8", "optimizer": "nesterov_momentum"},
        "sweep": {
            "batch_sizes": [batch_size],
            "trials": 1,
            "max_steps": 1000,
            "goal": "val/classification_error < 0.03",
            "evaluate": {"every": 20},
        },
        "search_space": {"learning_rate": {"values": [0.1]}, "momentum": {"values": [0.9]}},
    }
    return Sweep.parse(data, "test").study(batch_size)


def program_of(
    exchange: Exchange,
    network: str,
    microbatch_size: Any = 1000,
    precision: str = "float32",
    batch_size: int = 24,
    num_trials: int = 1,
    rate: float = 0.05,
) -> TorchProgram:
    rate = RATES.get(network, rate)
    points = [Point(3 + trial, {"learning_rate": rate / (1 + trial), "momentum": 0.9}) for trial in range(num_trials)]
    study = study_of(batch_size)
    return TorchProgram(problem_of(network), study, points, precision, microbatch_size, exchange=exchange)


def gradients(exchange: Exchange, bucket_bytes: int = 1 << 10, **case: Any) -> dict[str, np.ndarray]:
    """Return the gradients and the loss of the first two batches, at the same weights, sent in small buckets."""
    buckets.BUCKET_BYTES = bucket_bytes
    program = program_of(exchange, **case)
    found = {}
    for index, batch in enumerate(program._batches.ahead(program._clock, [program._study.batch_size] * 2)):
        losses = exchange.sum(program._differentiate(batch))
        found |= {f"loss_{index}": losses.numpy(), f"gradient_{index}": program._parameters.gradients.numpy().copy()}
    return found


def trained(exchange: Exchange, steps: int = 50, **case: Any) -> dict[str, np.ndarray]:
    """Return the state after some steps, and the metrics."""
    program = program_of(exchange, **case)
    while program.step < steps and len(program.trial_ids):
        program.advance(steps)
    return {**program.state(), **(program.evaluate() if len(program.trial_ids) else {})}


class Gang:
    """Four processes that do one task after the other together: all of them, or the first two."""

    sizes = (2, 4)

    def __init__(self, folder: Path, start_method: str = "spawn") -> None:
        context: Any = processes.get_context(start_method)
        self._answers = context.Queue()
        self._tasks = [context.SimpleQueue() for _ in range(max(self.sizes))]
        self._processes = [
            context.Process(target=_serve, args=(rank, str(folder / "store"), tasks, self._answers), daemon=True)
            for rank, tasks in enumerate(self._tasks)
        ]
        for each in self._processes:
            each.start()

    def do(self, size: int, function: Callable[..., Any], **case: Any) -> list[Any]:
        """Return what each of the first `size` ranks answers; what it raises is raised."""
        for tasks in self._tasks[:size]:
            tasks.put((size, function, case))
        answers = dict(self._answers.get(timeout=120) for _ in range(size))
        for answer in answers.values():
            if isinstance(answer, Exception):
                raise answer
        return [answers[rank] for rank in range(size)]

    def close(self) -> None:
        """End the processes."""
        for tasks in self._tasks:
            tasks.put(None)
        for each in self._processes:
            each.join(20)
            each.kill()


def _serve(rank: int, store: str, tasks: Any, answers: Any) -> None:
    torch.set_num_threads(1)
    size = max(Gang.sizes)
    dist.init_process_group(
        "gloo", store=dist.FileStore(store, size), rank=rank, world_size=size, timeout=timedelta(seconds=100)
    )
    groups = {size: dist.new_group(list(range(size))) for size in Gang.sizes}
    while (task := tasks.get()) is not None:
        size, function, case = task
        try:
            answers.put((rank, function(Distributed(groups[size]), **case)))
        except Exception as error:
            answers.put((rank, error))
    dist.destroy_process_group()
