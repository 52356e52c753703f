"""Networks of one's own as one of several workers trains them: cases for `test_shared.py`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

from batchlab.engine.base import Point
from batchlab.engine.gang.exchange import Exchange
from batchlab.own.torch_sweep import TorchSweep


class Own(nn.Module):
    """Batch normalisation, dropout and a learned embedding, of two inputs or of one."""

    def __init__(self) -> None:
        super().__init__()
        self.dense, self.embedding = nn.Linear(2, 8), nn.Embedding(4, 8)
        self.norm, self.dropout, self.head = nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 2)

    def forward(self, points: Tensor, quadrants: Tensor | None = None) -> Tensor:
        hidden = self.norm(self.dense(points)).relu()
        hidden = hidden if quadrants is None else hidden + self.embedding(quadrants)
        outputs: Tensor = self.head(self.dropout(hidden))
        return outputs


def points(count: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return points, their quadrants and their labels."""
    drawn = torch.randn(count, 2, generator=torch.Generator().manual_seed(seed))
    return drawn, (2 * (drawn[:, 0] > 0) + (drawn[:, 1] > 0)).long(), (drawn.prod(1) > 0).long()


class Disturbed(Dataset[Any]):
    """The same one by one, disturbed each time."""

    def __init__(self, count: int, seed: int, has_quadrants: bool) -> None:
        self.parts, self.has_quadrants = points(count, seed), has_quadrants

    def __len__(self) -> int:
        return len(self.parts[0])

    def __getitem__(self, index: int) -> Any:
        point, quadrant, label = (part[index] for part in self.parts)
        point = point + 0.1 * torch.randn(2)
        return {"point": point, "quadrant": quadrant, "label": label} if self.has_quadrants else (point, label)


def step(module: nn.Module, batch: Any) -> Tensor:
    """Return the mean loss of a batch, whatever that is."""
    if isinstance(batch, dict):
        batch = batch["point"], batch["quadrant"], batch["label"]
    return nn.functional.cross_entropy(module(batch[0], batch[1]), batch[2])


def regression(outputs: Tensor, labels: Tensor) -> Tensor:
    return nn.functional.mse_loss(outputs[:, 0], labels)


def sweep_of(kind: str, batch_size: int = 12, microbatch_size: int | None = None, **keywords: Any) -> TorchSweep:
    """Return a sweep: `tensors`, `dataset`, `regression`, `step`, or `step dataset`."""
    is_stepped, is_read = "step" in kind, "dataset" in kind
    examples: list[Any] = [points(60, 0), points(20, 1)]
    if is_read:
        examples = [Disturbed(60, 0, is_stepped), Disturbed(20, 1, is_stepped)]
    elif not is_stepped:
        examples = [(point, point[:, 0] if kind == "regression" else label) for point, _, label in examples]
    loss: Any = regression if kind == "regression" else nn.functional.cross_entropy
    own = TorchSweep(
        name="own",
        model=Own,
        train=examples[0],
        val=examples[1],
        optimizer="nesterov_momentum",
        batch_sizes=[batch_size],
        goal="val/loss < 0",
        trials=2,
        max_steps=50,
        evaluate={"every": 10},
        search_space={"learning_rate": (0.01, 0.2), "momentum": (0.5, 0.9)},
        engine={"precision": "float64", "microbatch_size": microbatch_size or "auto", **keywords},
        **({"training_step": step} if is_stepped else {"loss": loss}),
    )
    own.file = None
    return own


def trained(exchange: Exchange, kind: str, **case: Any) -> dict[str, np.ndarray]:
    """Return the state after 50 steps in float64, and the metrics."""
    own = sweep_of(kind, **case)
    own.trainer.join(exchange)
    study = own.spec.studies()[0]
    program = own.trainer.program(study, [Point(3, {"learning_rate": 0.1, "momentum": 0.9})])
    while program.step < 50:
        program.advance(50)
    return {**program.state(), **program.evaluate()}
