"""A first study: steps to 3 % error on handwritten digits, at four batch sizes, tuned at each."""

import batchlab


def main() -> None:
    sweep = batchlab.load_sweep("digits", ["sweep.trials=8", "sweep.batch_sizes=[1, 8, 64, 512]"])
    summary = batchlab.run_sweep(sweep, "first-lab")
    print(summary)


if __name__ == "__main__":
    main()
