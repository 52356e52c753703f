"""One file of a lab goes bad, or one more comes: every reader must answer rightly or name it."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import safetensors.numpy

from batchlab.store.migrations import FORMAT
from tests.torture import changes
from tests.torture.case import Case, Cases, chance
from tests.torture.stock import Sample
from tests.torture.verdict import Damage, judge

KIND = "damage"
BESIDE = "beside"
RECORDS = ("lab.json", "sweep.json", "import.json", "study.json")


def cases(stock: Sequence[Sample], seed: int, numbers: range | None = None) -> Cases:
    """Yield cases without an end, or those of some numbers."""
    for number in numbers if numbers is not None else count():
        yield _case(stock, seed, number)


def _case(stock: Sequence[Sample], seed: int, number: int) -> Case:
    dice = chance(KIND, seed, number)
    sample = dice.choices(stock, weights=[_WEIGHTS.get(each.name, 2) for each in stock])[0]
    change = dice.choices([_bytes, _edit, _path, _stale, _add, _format], weights=[30, 35, 20, 8, 8, 3])[0]
    plan = change(sample, dice)

    def run(place: Path) -> list[str]:
        lab = copy_lab(sample.lab, place)
        plan.apply(lab)
        return judge(sample, lab, plan.damage, dice)

    return Case(KIND, number, f"{sample.name}: {plan.damage.what}", run)


_WEIGHTS = {"quadratic": 6, "digits": 6, "half": 4, "imported": 4, "other": 0, "format-1": 1, "format-2": 1}


def copy_lab(lab: Path, place: Path) -> Path:
    """Return a copy of a lab in a folder, beside something that nobody may touch."""
    shutil.copytree(lab, place / "lab", symlinks=True)
    beside = place / BESIDE
    beside.mkdir()
    (beside / "canary").write_text("still here\n")
    return place / "lab"


@dataclass(frozen=True)
class Plan:
    """What is to be done to a copy, and what it is called."""

    damage: Damage
    apply: Callable[[Path], None]


def files_of(lab: Path) -> list[str]:
    """Return the files of a lab by their names in it."""
    return sorted(str(path.relative_to(lab)) for path in lab.rglob("*") if path.is_file())


def _some_file(sample: Sample, dice: random.Random, suffix: str = "") -> str:
    """Return a file of the lab; states, of which there are many, as rarely as others."""
    files = [name for name in files_of(sample.lab) if name.endswith(suffix) and (sample.lab / name).stat().st_size]
    kinds = sorted({Path(name).name if "." in Path(name).name else name for name in files} - _many(files))
    kind = dice.choice([*kinds, "states"]) if _many(files) else dice.choice(kinds)
    return dice.choice([name for name in files if Path(name).name == kind] or sorted(files))


def _many(files: list[str]) -> set[str]:
    return {Path(name).name for name in files if Path(name).parent.name in ("states", "parts", "checkpoints")}


def _bytes(sample: Sample, dice: random.Random) -> Plan:
    name, change = _some_file(sample, dice), dice.choice(changes.BYTES)
    content = change((sample.lab / name).read_bytes(), dice)
    what = f"{change.__name__} in {name}"
    return Plan(Damage(what, (name,), is_same=_is_same(sample, name, content)), lambda lab: _write(lab / name, content))


def _edit(sample: Sample, dice: random.Random) -> Plan:
    name, change = _some_file(sample, dice, ".json"), dice.choice(changes.EDITS)
    content = change((sample.lab / name).read_bytes(), dice)
    damage = Damage(f"{change.__name__} in {name}", (name,), is_edit=True, is_same=_is_same(sample, name, content))
    return Plan(damage, lambda lab: _write(lab / name, content))


def _is_same(sample: Sample, name: str, content: bytes) -> bool:
    """Return whether a content means the same: equal bytes, and in lab.json, which has no seal, equal values.

    A format that is older than the files tells nobody anything wrong: all of them are read as they are.
    """
    if name == "lab.json" and content.strip()[:1] == b"{":
        with suppress(ValueError, AttributeError):
            return json.loads(content).get("format") in range(1, FORMAT + 1)
    sound = (sample.lab / name).read_bytes()
    if content == sound:
        return True
    if name.endswith((".npz", ".safetensors")):
        return _arrays(content, name) == _arrays(sound, name) is not None
    return Path(name).parent.name == "parts" and _rows(content) == _rows(sound) is not None


def _arrays(content: bytes, name: str) -> dict[str, tuple[object, ...]] | None:
    """Return what a checkpoint holds, array by array; None where it cannot be read."""
    try:
        arrays = dict(np.load(BytesIO(content), allow_pickle=False)) if name.endswith(".npz") else _tensors(content)
        return {name: (str(each.dtype), each.shape, each.tobytes()) for name, each in arrays.items()}
    except Exception:  # whatever numpy, zipfile and safetensors raise for a damaged file
        return None


def _tensors(content: bytes) -> dict[str, np.ndarray]:
    """Return the tensors of a checkpoint, and its table of JSON as one more."""
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    table = json.loads(header["__metadata__"]["batchlab"])
    return {**safetensors.numpy.load(content), "": np.array(json.dumps(table, sort_keys=True))}


def _rows(content: bytes) -> tuple[object, ...] | None:
    """Return what a pack holds, which proves its rows and not each byte; None where it cannot be read."""
    try:
        table = pq.read_table(BytesIO(content))
    except (OSError, ValueError):
        return None
    return table.schema.metadata, repr(table.to_pydict())


def _write(path: Path, content: bytes) -> None:
    path.unlink()
    path.write_bytes(content)


def _path(sample: Sample, dice: random.Random) -> Plan:
    name, change = _some_file(sample, dice), dice.choice(changes.PATHS)
    is_passing = Path(name).parent.name in ("states", "parts", "checkpoints")  # trained again, if it is missed at all
    is_same = change is changes.link_to_same or (change is changes.remove and is_passing)
    is_gone = change is changes.remove and Path(name).name in RECORDS
    damage = Damage(f"{change.__name__}: {name}", (name,), is_same=is_same, is_gone=is_gone)
    return Plan(damage, lambda lab: change(lab / name, lab.parent / BESIDE / "other", dice))


def _stale(sample: Sample, dice: random.Random) -> Plan:
    """Put the older version of one file back, from before the lab grew or was confirmed."""
    files = [n for n in files_of(sample.before) if (sample.lab / n).exists() and not _is_as_before(sample, n)]
    if not files:
        return _bytes(sample, dice)
    name = dice.choice(files)
    content = (sample.before / name).read_bytes()
    return Plan(Damage(f"older {name}", (name,), is_stale=True), lambda lab: _write(lab / name, content))


def _is_as_before(sample: Sample, name: str) -> bool:
    return _is_same(sample, name, (sample.before / name).read_bytes())


_NEW = (
    "notes.txt",
    "study.json.bak",
    ".DS_Store",
    "trials.csv",
    "17",
    "x.tmp",
    "growing",
    "replaced/8",
    "a\nb",
    "\udcff",
)


def _add(sample: Sample, dice: random.Random) -> Plan:
    """Put a file, or an empty folder, of the user's own somewhere in the lab."""
    folders = sorted({str(Path(name).parent) for name in files_of(sample.lab)} | {"sweeps", "."})
    name = str(Path(dice.choice(folders)) / dice.choice(_NEW))
    is_folder = dice.random() < 0.3

    def apply(lab: Path) -> None:
        (lab / name).parent.mkdir(parents=True, exist_ok=True)
        if is_folder:
            (lab / name).mkdir(exist_ok=True)
        elif not (lab / name).exists():
            (lab / name).write_bytes(b"mine\n")

    return Plan(Damage(f"added {'folder ' if is_folder else ''}{name!r}", (name,), is_same=True, is_added=True), apply)


def _format(sample: Sample, dice: random.Random) -> Plan:
    """Let lab.json tell another format."""
    content = dice.choice(
        [b'{"format": 1}', b'{"format": 2}', b'{"format": 4}', b'{"format": 3.0}', b"[3]", b"3", b"{}"]
    )
    return Plan(
        Damage(
            f"lab.json: {content.decode()}", ("lab.json",), is_edit=True, is_same=_is_same(sample, "lab.json", content)
        ),
        lambda lab: _write(lab / "lab.json", content),
    )
