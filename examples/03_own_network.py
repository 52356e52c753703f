"""Your own network and data, studied: two moons, at three batch sizes. Run it with `batchlab run 03_own_network.py`."""

import torch
from sklearn.datasets import make_moons
from torch import nn

import batchlab


class Net(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 2))


def examples(count, seed):
    points, labels = make_moons(count, noise=0.1, random_state=seed)
    return torch.tensor(points, dtype=torch.float32), torch.tensor(labels)


def error(outputs, labels):
    return (outputs.argmax(1) != labels).float().mean()


sweep = batchlab.TorchSweep(
    name="moons",
    model=Net,
    train=examples(1000, seed=0),
    val=examples(500, seed=1),
    loss=nn.functional.cross_entropy,
    metrics={"error": error},
    optimizer="adamw",
    batch_sizes=[4, 32, 256],
    goal="val/error < 0.03",
    search_space={"learning_rate": (1e-4, 1e-1, "log"), "weight_decay": [0, 0.01]},
    trials=8,
)

if __name__ == "__main__":
    print(batchlab.run_sweep(sweep, "moons-lab"))
