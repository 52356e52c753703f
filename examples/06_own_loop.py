"""A training loop of your own, studied: ridge regression by mini-batches. Run it with `batchlab run 06_own_loop.py`."""

import numpy as np
from sklearn.datasets import load_diabetes

import batchlab

np.seterr(over="ignore", invalid="ignore")  # a trial may diverge: its loss tells so
inputs, targets = load_diabetes(return_X_y=True)
inputs, targets = inputs / inputs.std(0), (targets - targets.mean()) / targets.std()


def train(batch_size, seed, max_steps, learning_rate):
    random, weights = np.random.default_rng(seed), np.zeros(inputs.shape[1])
    for step in range(1, max_steps + 1):
        batch = random.choice(350, batch_size, replace=False)
        residuals = inputs[batch] @ weights - targets[batch]
        weights -= learning_rate * (inputs[batch].T @ residuals / batch_size + 0.01 * weights)
        if step % 5 == 0:
            yield step, {"val/loss": np.mean((inputs[350:] @ weights - targets[350:]) ** 2)}


sweep = batchlab.LoopSweep(
    name="diabetes",
    train=train,
    batch_sizes=[1, 4, 16, 64, 256],
    goal="val/loss < 0.5",
    search_space={"learning_rate": (1e-4, 1.0, "log")},
    trials=16,
    max_steps=5000,
)

if __name__ == "__main__":
    print(batchlab.run_sweep(sweep, "diabetes-lab"))
