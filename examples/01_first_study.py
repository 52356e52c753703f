"""A first study: steps to 3 % error on handwritten digits, at four batch sizes, tuned at each."""

from pathlib import Path

import batchlab

LAB = Path("first-lab")


def main() -> None:
    sweep = batchlab.load_sweep("digits", ["sweep.trials=8", "sweep.batch_sizes=[1, 8, 64, 512]"])
    batchlab.run_sweep(sweep, LAB)
    results = batchlab.Lab.open(LAB).results(sweep).results
    summary = batchlab.summarise(results, sweep.search.hardest_goal)
    for row in summary.rows:
        rate = row.trial.metaparameters["learning_rate"]
        print(f"batch size {row.batch_size}: {row.steps} steps, learning rate {rate:.3g}")
    low, high = summary.fit.b_crit_ci
    print(f"critical batch size {summary.fit.b_crit:.1f}, 95 % interval {low:.1f} to {high:.1f}")
    print(*summary.warnings, sep="\n")


if __name__ == "__main__":
    main()
