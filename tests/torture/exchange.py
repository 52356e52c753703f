"""Files and folders in the wrong place: of another study, sweep or lab, or under another name."""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from tests.torture.case import Case, Cases, chance
from tests.torture.damage import Plan, copy_lab, files_of
from tests.torture.snapshot import what_is
from tests.torture.stock import Sample
from tests.torture.verdict import Damage, judge

KIND = "exchange"


def cases(stock: Sequence[Sample], seed: int, numbers: range | None = None) -> Cases:
    """Yield cases without an end, or those of some numbers."""
    for number in numbers if numbers is not None else count():
        yield _case(stock, seed, number)


def _case(stock: Sequence[Sample], seed: int, number: int) -> Case:
    dice = chance(KIND, seed, number)
    sample = dice.choice([each for each in stock if each.name not in ("other", "format-1", "format-2")])
    other = dice.choice([each for each in stock if each.name != "format-1"])
    plan = dice.choice([_swap, _swap_studies, _from_lab, _from_lab, _study_from_lab, _rename, _double])(
        sample, other, dice
    )

    def run(place: Path) -> list[str]:
        lab = copy_lab(sample.lab, place)
        plan.apply(lab)
        return judge(sample, lab, plan.damage, dice)

    return Case(KIND, number, f"{sample.name}: {plan.damage.what}", run)


def _swap(sample: Sample, other: Sample, dice: random.Random) -> Plan:
    """Exchange two files of one lab, of one name as a rule."""
    files = [name for name in files_of(sample.lab) if Path(name).name not in ("lock", "lab.json")]
    one = dice.choice(files)
    alike = [name for name in files if Path(name).name == Path(one).name and name != one]
    two = dice.choice(alike) if alike and dice.random() < 0.8 else dice.choice(files)

    def apply(lab: Path) -> None:
        contents = (lab / one).read_bytes(), (lab / two).read_bytes()
        (lab / one).write_bytes(contents[1])
        (lab / two).write_bytes(contents[0])

    is_same = what_is(sample.lab / one) == what_is(sample.lab / two)
    return Plan(Damage(f"{one} and {two} exchanged", (one, two), is_same=is_same), apply)


def _studies(lab: Path) -> list[str]:
    return sorted(
        str(path.relative_to(lab)) for path in lab.glob("sweeps/*/*") if path.is_dir() and path.name.isdecimal()
    )


def _swap_studies(sample: Sample, other: Sample, dice: random.Random) -> Plan:
    """Exchange two whole studies of one lab."""
    one, two = dice.sample(_studies(sample.lab), 2)

    def apply(lab: Path) -> None:
        (lab / one).rename(lab.parent / "moving")
        (lab / two).rename(lab / one)
        (lab.parent / "moving").rename(lab / two)

    return Plan(Damage(f"studies {one} and {two} exchanged", (one, two)), apply)


def _from_lab(sample: Sample, other: Sample, dice: random.Random) -> Plan:
    """Take one file from another lab, that of the same place where there is one."""
    files = [name for name in files_of(sample.lab) if Path(name).name not in ("lock", "lab.json")]
    theirs = [name for name in files_of(other.lab) if Path(name).name not in ("lock", "lab.json")]
    shared = sorted(set(files) & set(theirs))
    name = dice.choice(shared if shared and dice.random() < 0.7 else files)
    alike = [each for each in theirs if Path(each).name == Path(name).name]
    source = name if name in shared else dice.choice(alike or theirs)
    content = (other.lab / source).read_bytes()
    is_same = content == (sample.lab / name).read_bytes()

    def apply(lab: Path) -> None:
        (lab / name).write_bytes(content)

    return Plan(Damage(f"{name} from {other.name}: {source}", (name,), is_same=is_same), apply)


def _study_from_lab(sample: Sample, other: Sample, dice: random.Random) -> Plan:
    """Take a whole study from another lab."""
    name = dice.choice(_studies(sample.lab))
    source = name if (other.lab / name).exists() else dice.choice(_studies(other.lab))

    def apply(lab: Path) -> None:
        shutil.rmtree(lab / name)
        shutil.copytree(other.lab / source, lab / name)

    is_same = other.lab == sample.lab and source == name
    return Plan(Damage(f"{name} from {other.name}: {source}", (name,), is_same=is_same), apply)


def _rename(sample: Sample, other: Sample, dice: random.Random) -> Plan:
    """Give a sweep or a study another name."""
    names = [*_studies(sample.lab), *(f"sweeps/{name}" for name in sample.sweeps)]
    old = dice.choice(names)
    new = str(Path(old).with_name(dice.choice(["7", "8000", "renamed", "0", "08", "-1", "a b", "x" * 200])))
    damage = Damage(f"{old} renamed to {Path(new).name[:20]}", (old, new), is_gone=True)
    return Plan(damage, lambda lab: _move(lab / old, lab / new))


def _move(old: Path, new: Path) -> None:
    if not new.exists():
        old.rename(new)


def _double(sample: Sample, other: Sample, dice: random.Random) -> Plan:
    """Have a sweep or a study twice."""
    names = [*_studies(sample.lab), *(f"sweeps/{name}" for name in sample.sweeps)]
    old = dice.choice(names)
    new = str(Path(old).with_name(dice.choice(["32", "doubled", "0", "08"])))

    def apply(lab: Path) -> None:
        if not (lab / new).exists():
            shutil.copytree(lab / old, lab / new)

    is_same = (sample.lab / new).exists()
    return Plan(Damage(f"{old} copied to {Path(new).name}", (new,), is_same=is_same), apply)
