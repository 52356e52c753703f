"""A module with several inputs and its own training step: do two numbers add up to an even one?

Run it with `batchlab run 05_training_step.py`.
"""

import torch
from torch import nn

import batchlab

NUMBERS = 10


class Sums(torch.utils.data.Dataset):
    """Any Dataset with a length: its items are dicts here. Loading processes read it while the network trains."""

    def __init__(self, count, seed):
        self.pairs = torch.randint(0, NUMBERS, (count, 2), generator=torch.Generator().manual_seed(seed))

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, index):
        first, second = self.pairs[index].tolist()
        return {"first": first, "second": second, "is_even": float((first + second) % 2 == 0)}


class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Embedding(NUMBERS, 8), nn.Embedding(NUMBERS, 8)
        self.head = nn.Sequential(nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 1))

    def forward(self, first, second):
        return self.head(self.first(first) + self.second(second)).squeeze(1)

    def training_step(self, batch):
        logits = self(batch["first"], batch["second"])
        return nn.functional.binary_cross_entropy_with_logits(logits, batch["is_even"].float())


def error(module, batch):
    is_even = module(batch["first"], batch["second"]) > 0
    return (is_even != (batch["is_even"] == 1)).float().mean()


sweep = batchlab.TorchSweep(
    name="even-sums",
    model=Adder,
    train=Sums(400, seed=0),
    val=Sums(100, seed=1),
    training_step=Adder.training_step,
    metrics={"error": error},
    optimizer="adamw",
    batch_sizes=[8, 32],
    goal="val/error < 0.05",
    search_space={"learning_rate": (1e-2, 1e-1, "log")},
    trials=2,
    max_steps=400,
    evaluate={"every": 20},
)

if __name__ == "__main__":
    print(batchlab.run_sweep(sweep, "even-sums-lab"))
