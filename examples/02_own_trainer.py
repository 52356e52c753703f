"""An own trainer: least squares by plain NumPy, studied at four batch sizes like any other workload."""

from pathlib import Path

import numpy as np

import batchlab

LAB = Path("own-lab")
TRUTH = np.linspace(-1, 1, 50)  # the weights to be found
SWEEP = {
    "name": "least-squares",
    "workload": {"dataset": "gaussian", "model": "linear", "optimizer": "sgd"},  # names for you to choose
    "sweep": {"batch_sizes": [1, 4, 16, 64], "trials": 8, "max_steps": 2000, "goal": "val/risk < 0.2"},
    "search_space": {"learning_rate": {"min": 1e-3, "max": 1.0, "scale": "log"}},
}


class LeastSquares:
    """A `Program`: some trials of one study in lockstep; inputs and label noise are standard normal."""

    def __init__(self, study, points):
        self.step, self.diverged, self._study = 0, {}, study
        self.trial_ids = np.array([point.trial_id for point in points])
        self._rates = np.array([[point.metaparameters["learning_rate"]] for point in points])
        self._weights = np.zeros((len(points), len(TRUTH)))  # [num_live, 50]

    def evaluate(self):
        return {"val/risk": 0.5 * np.sum((self._weights - TRUTH) ** 2, axis=1)}

    def advance(self, target):
        gradients = np.stack([self._gradient(*trial) for trial in zip(self.trial_ids, self._weights, strict=True)])
        self._weights = self._weights - self._rates * gradients
        self.step += 1
        is_live = self.evaluate()["val/risk"] <= 1e6  # false for NaN
        self.diverged |= {int(trial_id): self.step for trial_id in self.trial_ids[~is_live]}
        self._keep(is_live)

    def _gradient(self, trial_id, weights):
        rng = np.random.default_rng([self._study.seed, trial_id, self.step])  # no state to save
        inputs = rng.standard_normal((self._study.batch_size, len(TRUTH)))
        errors = inputs @ (weights - TRUTH) - rng.standard_normal(len(inputs))
        return errors @ inputs / len(inputs)

    def _keep(self, rows):
        self.trial_ids, self._rates, self._weights = self.trial_ids[rows], self._rates[rows], self._weights[rows]

    def state(self):
        diverged = np.array(list(self.diverged.items()), dtype=np.int64).reshape(-1, 2)
        return {"step": np.array(self.step), "ids": self.trial_ids, "weights": self._weights, "diverged": diverged}

    def restore(self, state):
        self._keep(np.isin(self.trial_ids, state["ids"]))
        self.step, self._weights = int(state["step"]), state["weights"]
        self.diverged = {int(trial_id): int(step) for trial_id, step in state["diverged"]}


class LeastSquaresTrainer:
    """A `Trainer`: makes programs, in every worker process."""

    def metrics(self, study):
        return ("val/risk",)

    def program(self, study, points, state=None):
        program = LeastSquares(study, points)
        if state is not None:
            program.restore(state)
        return program


def main() -> None:
    sweep = batchlab.Sweep.parse(SWEEP, "least-squares")
    summary = batchlab.run_sweep(sweep, LAB, trainer=LeastSquaresTrainer())
    for row in summary.rows:
        print(f"batch size {row.batch_size}: {row.steps} steps, {row.infeasible} diverged trials replaced")


if __name__ == "__main__":
    main()
