"""A program of your own: batchlab runs it once for each trial, and reads the lines that it prints."""

import argparse
import json
import random

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, required=True)
parser.add_argument("--lr", type=float, required=True)
parser.add_argument("--seed", type=int, required=True)
options = parser.parse_args()

random.seed(options.seed)
weight, step = 1.0, 0
while True:
    noise = sum(random.gauss(0, 1) for _ in range(options.batch_size)) / options.batch_size
    weight -= options.lr * (weight + noise)
    step += 1
    if step % 10 == 0:
        print(json.dumps({"step": step, "val/loss": weight**2 / 2}), flush=True)
