"""Hostile dataset files: wrong magic, absurd sizes, cut and flipped streams, pickles that would run something."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import random
import tarfile
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from batchlab.data import idx
from batchlab.data.restricted_pickle import read_pickle
from batchlab.data.tar_gz import read_members
from batchlab.errors import DataError
from tests.torture import changes
from tests.torture.asking import ask
from tests.torture.case import Case, Cases, chance
from tests.torture.stock import DIGITS, Sample, write_spec
from tests.torture.verdict import MOST_LINE

KIND = "data files"


def cases(stock: Sequence[Sample], seed: int, numbers: range | None = None) -> Cases:
    """Yield cases without an end, or those of some numbers."""
    for number in numbers if numbers is not None else count():
        yield _case(seed, number)


def _case(seed: int, number: int) -> Case:
    dice = chance(KIND, seed, number)
    what, run = dice.choice([_idx, _idx, _pickle, _tar, _folder])(dice)
    return Case(KIND, number, what, run)


Plan = tuple[str, Callable[[Path], list[str]]]


def _tried(read: Callable[[], Any]) -> list[str]:
    """Return what is wrong with a reader: it gives a value, or one line."""
    try:
        read()
    except DataError as error:
        text = str(error)
        return [] if text.isprintable() and len(text) < MOST_LINE else [f"no single line: {text[:300]!r}"]
    except Exception as error:
        return [f"{type(error).__name__}: {error}"[:500]]
    return []


def _idx(dice: random.Random) -> Plan:
    """Images or labels whose header lies, packed or not."""
    sizes = [dice.choice([0, 1, 3, 28, 1 << 31, (1 << 32) - 1]) for _ in range(dice.choice([1, 3]))]
    head = bytes([0, 0, dice.choice([8, 8, 9, 13]), len(sizes)])
    content = head + b"".join(size.to_bytes(4, "big") for size in sizes) + dice.randbytes(dice.choice([0, 9, 2352]))
    content = gzip.compress(content) if dice.random() < 0.5 else content
    change = dice.choice([None, *changes.BYTES])
    content = content if change is None else change(content, dice)
    if dice.random() < 0.05:
        content = gzip.compress(bytes(1 << 30), 9)  # a megabyte that becomes a gigabyte
    read = idx.read_images if dice.random() < 0.5 else _read_labels
    return f"an idx file of {sizes}, {len(content)} bytes", lambda place: _tried(lambda: read(content, "the file"))


def _read_labels(content: bytes, source: str) -> Any:
    return idx.read_labels(content, source, 10)


class _Runs:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch /tmp/torture-ran-a-pickle",)


def _pickle(dice: random.Random) -> Plan:
    """A pickle of something else, of too much, or that would run a command."""
    things: list[Any] = [
        _Runs(),
        {b"data": 1},
        [],
        None,
        {"data": "x" * 1000, "labels": [10**4000]},
        {b"labels": [1] * 99},
    ]
    content = pickle.dumps(dice.choice(things), protocol=dice.choice([0, 2, 4, 5]))
    change = dice.choice([None, *changes.BYTES])
    content = content if change is None else change(content, dice)

    def run(place: Path) -> list[str]:
        problems = _tried(lambda: read_pickle(content, "the file"))
        if Path("/tmp/torture-ran-a-pickle").exists():
            Path("/tmp/torture-ran-a-pickle").unlink()
            problems.append("a pickle has run a command")
        return problems

    return f"a pickle of {len(content)} bytes", run


def _tar(dice: random.Random) -> Plan:
    """A tar.gz with the batch that is asked for, damaged or larger than any."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        info = tarfile.TarInfo(dice.choice(["folder/batch", "batch", "../batch", "folder/other"]))
        body = dice.randbytes(dice.choice([0, 10, 5000]))
        info.size = len(body)
        tar.addfile(info, io.BytesIO(body))
    change = dice.choice([None, *changes.BYTES])
    content = out.getvalue() if change is None else change(out.getvalue(), dice)

    def run(place: Path) -> list[str]:
        (place / "data.tar.gz").write_bytes(content)
        return _tried(lambda: read_members(place / "data.tar.gz", ["batch"], 1000))

    return f"a tar.gz, {change.__name__ if change else 'whole'}", run


_FILES = {
    "mnist": ("mnist/train-images-idx3-ubyte.gz", "mnist/train-labels-idx1-ubyte.gz"),
    "cifar_10": ("cifar-10-python.tar.gz", "cifar-10-batches-py/data_batch_1", "cifar-10-batches-bin/data_batch_1.bin"),
    "tiny_shakespeare": ("tiny_shakespeare/input.txt", "tiny-shakespeare/input.txt", "input.txt"),
}
_MODELS = {"mnist": "fc_8", "cifar_10": "resnet_8", "tiny_shakespeare": "lstm"}


def _folder(dice: random.Random) -> Plan:
    """A data folder with hostile files, asked through the command line."""
    dataset = dice.choice(list(_FILES))
    name = dice.choice(_FILES[dataset])
    content = dice.choice([b"", b"\x1f\x8b", dice.randbytes(100), gzip.compress(dice.randbytes(1000)), b"\xff" * 10])
    put = dice.choice(["file", "file", "folder", "link to itself"])

    def run(place: Path) -> list[str]:
        path = place / "data" / name
        path.parent.mkdir(parents=True)
        if put == "file":
            path.write_bytes(content)
        elif put == "folder":
            path.mkdir()
        else:
            path.symlink_to(path.name)
        spec = {**DIGITS, "workload": {"dataset": dataset, "model": _MODELS[dataset], "optimizer": "sgd"}}
        path = write_spec(place / "spec.toml", spec)
        got = ask("run", path, "--data", place / "data", "--lab", place / "lab", "--workers", 1)
        if got.code is None:
            return [f"traceback: {got.err[-1500:]}"]
        lines = [line for line in got.lines if line.startswith("batchlab: ")]
        return [] if got.code == 2 and len(lines) == 1 else [f"exit code {got.code}: {got.err[-800:]}"]

    return f"{dataset}: {put} at {name}, {len(content)} bytes", run
