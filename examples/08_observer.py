"""An observer: how large the gradients of batches and of microbatches are, stored beside the error of a network."""

from pathlib import Path

import batchlab

LAB = Path("observed-lab")


class SquaredNorms(batchlab.Observer):
    """The squared norm of the gradient of a batch's mean loss, and of a microbatch's: means over all steps so far."""

    metrics = ("train/batch_gradient", "train/microbatch_gradient")

    def start(self, parameters):  # one trial in each row
        return {name: parameters.new_zeros(len(parameters)) for name in ("steps", "batch", "microbatch")}

    def see_microbatch(self, state, microbatch):  # of its mean loss: divided by share^2; its weight in the mean: share
        state["microbatch"] += microbatch.gradients.square().sum(1) / microbatch.share

    def see_batch(self, state, batch):
        state["batch"] += batch.gradients.square().sum(1)
        state["steps"] += 1

    def report(self, state):
        return {f"train/{name}_gradient": state[name] / state["steps"] for name in ("batch", "microbatch")}


def main() -> None:
    settings = ["batch_sizes=[8, 32]", "trials=2", "max_steps=200", "confirm={seeds=2, points=1}"]
    sweep = batchlab.load_sweep("digits", ["engine.microbatch_size=4", *(f"sweep.{each}" for each in settings)])
    batchlab.run_sweep(sweep, LAB, observers=[SquaredNorms()])
    for result in batchlab.Lab.open(LAB).results(sweep).results:
        last = {name: values[-1] for name, values in result.measurements.curve(0).metrics.items()}
        large, small = last["train/batch_gradient"], last["train/microbatch_gradient"]
        print(f"batch size {result.batch_size}: |g|^2 is {large:.3g}, that of microbatches of 4 {small:.3g}")


if __name__ == "__main__":
    main()
