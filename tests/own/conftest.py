"""A small study of one's own: two classes of points in the plane."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from batchlab.own.torch_sweep import TorchSweep

FILE = """
import torch
from torch import nn
import batchlab

class Net(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))

def examples(count, seed):
    points = torch.randn(count, 2, generator=torch.Generator().manual_seed(seed))
    return points, (points.prod(1) > 0).long()

sweep = batchlab.TorchSweep(
    name="own", model=Net, train=examples(200, 0), val=examples(50, 1), loss=nn.functional.cross_entropy,
    metrics={"error": lambda outputs, labels: (outputs.argmax(1) != labels).float().mean()},
    optimizer="adamw", batch_sizes=[4, 16], goal="val/error < 0.2", trials=2, max_steps=200, engine={"pack_size": 2},
    search_space={"learning_rate": (1e-2, 1e-1, "log")})
"""


@pytest.fixture(autouse=True)
def _one_thread(one_thread: None) -> None: ...


class Net(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))


def examples(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    points = torch.randn(count, 2, generator=torch.Generator().manual_seed(seed))
    return points, (points.prod(1) > 0).long()


@pytest.fixture
def make_own():
    """Return a function that makes a sweep as at a prompt, with some keywords changed."""

    def make(**changes):
        keywords = {
            "name": "own",
            "model": Net,
            "train": examples(200, 0),
            "val": examples(50, 1),
            "loss": nn.functional.cross_entropy,
            "metrics": {"error": lambda outputs, labels: (outputs.argmax(1) != labels).float().mean()},
            "optimizer": "adamw",
            "batch_sizes": [4, 16],
            "goal": "val/error < 0.2",
            "trials": 2,
            "max_steps": 200,
            "search_space": {"learning_rate": (1e-2, 1e-1, "log")},
        }
        own = TorchSweep(**{name: value for name, value in (keywords | changes).items() if value is not ...})
        own.file = None
        return own

    return make


@pytest.fixture
def own_file(tmp_path):
    path = tmp_path / "own.py"
    path.write_text(FILE)
    return path
