"""The labs that are tortured: small ones of every sort, made once for each run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from batchlab.store.archive.exporter import export_lab
from batchlab.store.archive.manifest import NAME as MANIFEST
from batchlab.store.lab import Lab
from tests.torture.asking import REPOSITORY, ask
from tests.torture.content import Content, content

KEPT = REPOSITORY / "tests" / "store" / "labs"

QUADRATIC: dict[str, Any] = {
    "name": "quad",
    "workload": {"dataset": {"name": "nqm", "dimension": 10}, "model": "quadratic", "optimizer": "sgd"},
    "sweep": {
        "batch_sizes": [1, 8, 64],
        "trials": 4,
        "max_steps": 120,
        "goal": "val/risk <= 0.3",
        "evaluate": {"growth": 1.2},
    },
    "search_space": {"learning_rate": {"min": 0.01, "max": 3.0, "scale": "log"}},
    "engine": {"pack_size": 2},
}
DIGITS: dict[str, Any] = {
    "name": "digits-small",
    "workload": {"dataset": "digits", "model": "fc_8", "optimizer": "nesterov_momentum"},
    "sweep": {
        "batch_sizes": [16, 128],
        "trials": 3,
        "max_steps": 60,
        "goal": "val/classification_error < 0.5",
        "evaluate": {"growth": 1.5},
        "confirm": {"seeds": 2, "points": 2},
    },
    "search_space": {
        "learning_rate": {"min": 0.01, "max": 1.0, "scale": "log"},
        "momentum": {"min": 0.0, "max": 0.9},
    },
    "engine": {"pack_size": 2, "keep_states": True},
}


def changed(spec: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return a spec with some values changed: `trials=5` in its table `sweep`, `name`, `seed` and `at` at its top."""
    top = {name: value for name, value in changes.items() if name in ("name", "seed")}
    inner = {name: value for name, value in changes.items() if name not in top}
    return {**spec, **top, "sweep": {**spec["sweep"], **inner}}


def toml(data: Any) -> str:
    """Return plain data as a value of TOML.

    >>> toml({"a": [1, "b"], "c": {"d": True}})
    '{"a" = [1, "b"], "c" = {"d" = true}}'
    """
    if isinstance(data, dict):
        return "{" + ", ".join(f"{json.dumps(name)} = {toml(value)}" for name, value in data.items()) + "}"
    if isinstance(data, list):
        return "[" + ", ".join(map(toml, data)) + "]"
    return json.dumps(data)


def write_spec(path: Path, spec: dict[str, Any]) -> Path:
    """Write a spec file and return where it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{name} = {toml(value)}\n" for name, value in spec.items()))
    return path


@dataclass(frozen=True)
class Sample:
    """One lab of the stock, with all that is needed to judge what became of a copy."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def lab(self) -> Path:
        return self.folder / "lab"

    @property
    def before(self) -> Path:
        """The lab as it was before it grew or was confirmed; the same again where it never did."""
        earlier = self.folder / "before"
        return earlier if earlier.exists() else self.lab

    @property
    def archive(self) -> Path | None:
        """What was imported, where something was."""
        return next(iter(self.folder.glob("archive*")), None)

    @property
    def specs(self) -> list[Path]:
        """The spec of every sweep that was run."""
        return sorted(self.folder.glob("specs/*.toml"))

    @cached_property
    def sweeps(self) -> dict[str, list[int]]:
        """The batch sizes of every sweep."""
        return {sweep.name: list(sweep.batch_sizes) for sweep in Lab.open(self.lab).sweeps()}

    @cached_property
    def completed(self) -> Content:
        """What the lab holds once everything in it has been run to its end."""
        found: Content = json.loads((self.folder / "completed.json").read_text())
        return found

    def complete(self, lab: Path) -> list[str]:
        """Run, or import, all that belongs in a copy of the lab; return what went wrong."""
        answers = [ask("run", spec, "--lab", lab, "--workers", 1) for spec in self.specs]
        if self.archive is not None:
            answers.append(ask("import", self.archive, "--lab", lab, "--workers", 1))
        return [f"run again: {answer.err}" for answer in answers if answer.code != 0]


def make_stock(folder: Path, names: Sequence[str] | None = None) -> list[Sample]:
    """Make all labs, or some, below a folder and return them."""
    for name in names or _MAKERS:
        _MAKERS[name](folder / name)
        _complete(Sample(folder / name), folder / "completing")
    return [sample for sample in stock(folder) if sample.folder.exists()]


def stock(folder: Path) -> list[Sample]:
    """Return the labs that `make_stock` made."""
    return [Sample(folder / name) for name in _MAKERS]


def _complete(sample: Sample, place: Path) -> None:
    """Note what a lab is once it is complete."""
    shutil.copytree(sample.lab, place)
    problems = sample.complete(place)
    assert not problems, problems
    (sample.folder / "completed.json").write_text(json.dumps(content(place)))
    shutil.rmtree(place)


def _run(place: Path, spec: dict[str, Any], *options: object, keep: bool = True) -> None:
    path = write_spec(place / "specs" / f"{spec['name']}.toml", spec)
    answer = ask("run", path, "--lab", place / "lab", "--workers", 1, *options)
    assert answer.code == 0, answer.err
    if not keep:
        path.unlink()


def _quadratic(place: Path) -> None:
    """Two sweeps of one workload, one of them grown."""
    _run(place, QUADRATIC)
    _run(place, changed(QUADRATIC, name="quad-other", seed=5, batch_sizes=[8, 64]))
    shutil.copytree(place / "lab", place / "before")
    _run(place, changed(QUADRATIC, trials=6))


def _other(place: Path) -> None:
    """The same names with another seed, and another goal."""
    _run(place, changed(QUADRATIC, seed=1, trials=6))
    _run(place, changed(QUADRATIC, name="quad-other", seed=5, batch_sizes=[8, 64], goal="val/risk <= 0.5"))


def _digits(place: Path) -> None:
    """Networks: with trials aside, states kept, confirmed afterwards."""
    spec = changed(DIGITS)
    bare = {**spec, "sweep": {name: value for name, value in spec["sweep"].items() if name != "confirm"}}
    _run(place, bare, "--only", "4..5")
    _run(place, bare)
    shutil.copytree(place / "lab", place / "before")
    _run(place, spec)


def _half(place: Path) -> None:
    """One sweep with a few packs, one finished, and one that is growing."""
    _run(place, changed(QUADRATIC, name="begun"), "--only", "0..1")
    _run(place, changed(QUADRATIC, name="growing"))
    shutil.copytree(place / "lab", place / "before")
    _run(place, changed(QUADRATIC, name="growing", trials=8), "--only", "6..7")
    _run(place, changed(QUADRATIC, name="done", batch_sizes=[4]))


def _imported(place: Path) -> None:
    """What another lab exported, as an archive of strangers: without batchlab's own notes."""
    own = place / "own"
    _run(own, changed(QUADRATIC, name="published", protocol="full"))
    out = place / "archive"
    for _ in export_lab(Lab.open(own / "lab"), out):
        pass
    for path in out.rglob("*.json"):
        plain = json.loads(path.read_text())
        plain.pop("_batchlab", None)
        path.write_text(json.dumps(plain))
    (out / MANIFEST).unlink()
    mnist = out / "mnist" / "simple_cnn_base"
    mnist.mkdir(parents=True)
    (out / "nqm" / "quadratic" / "sgd").rename(mnist / "sgd")
    shutil.rmtree(out / "nqm")
    shutil.rmtree(own)
    _rename_in_archive(mnist / "sgd")
    answer = ask("import", out, "--lab", place / "lab", "--workers", 1)
    assert answer.code == 0, answer.err


def _rename_in_archive(folder: Path) -> None:
    """Make a workload of the paper of it, so that it has a goal and its improving rows are kept."""
    for path in folder.rglob("study.json"):
        plain = json.loads(path.read_text())
        path.write_text(json.dumps({**plain, "dataset": "mnist", "model": "simple_cnn_base", "optimizer": "sgd"}))
    for path in folder.rglob("measurements.csv"):
        path.write_text(path.read_text().replace("val/risk", "val/classification_error"))


def _kept(number: int) -> Callable[[Path], None]:
    def make(place: Path) -> None:
        """Copy the kept sample of a format."""
        shutil.copytree(KEPT / f"format-{number}", place / "lab")
        for path in sorted((place / "lab").glob("sweeps/*/sweep.json")):
            spec = json.loads(path.read_text())
            spec.pop("digest", None)
            spec["sweep"].pop("sampler_version", None)
            write_spec(place / "specs" / f"{spec['name']}.toml", spec)

    return make


_MAKERS: dict[str, Callable[[Path], None]] = {
    "quadratic": _quadratic,
    "other": _other,
    "digits": _digits,
    "half": _half,
    "imported": _imported,
    **{f"format-{number}": _kept(number) for number in (1, 2, 3)},
}
