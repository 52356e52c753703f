"""Hostile archives: names that lead elsewhere, links, giants, cut and flipped streams, JSON and CSV of every kind.

Whatever an archive holds, the import ends with one line for each finding, writes nothing outside the lab, uses little
memory, and what is sound of it answers as ever.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import random
import shutil
import tarfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import count
from pathlib import Path

from tests.torture import changes
from tests.torture.asking import Answer, ask
from tests.torture.case import Case, Cases, chance
from tests.torture.damage import BESIDE
from tests.torture.snapshot import differences, snapshot
from tests.torture.stock import Sample
from tests.torture.verdict import MOST_LINE

KIND = "archives"
MOST_SECONDS = 10
_PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".tar": lambda content: content,
    ".tar.gz": gzip.compress,
    ".tar.bz2": bz2.compress,
    ".tar.xz": lzma.compress,
}


def cases(stock: Sequence[Sample], seed: int, numbers: range | None = None) -> Cases:
    """Yield cases without an end, or those of some numbers."""
    sample = next(each for each in stock if each.name == "imported")
    for number in numbers if numbers is not None else count():
        yield _case(sample, seed, number)


def _case(sample: Sample, seed: int, number: int) -> Case:
    dice = chance(KIND, seed, number)
    make = dice.choice([_file_of_tree, _file_of_tree, _file_of_tree, _members, _members, _stream])
    what, build = make(sample, dice)
    return Case(KIND, number, what, lambda place: list(_judge(sample, build, place)))


Built = tuple[Path, set[int] | None, bool]
"""The archive, the batch sizes that are touched (None for all), and whether it must be refused whole."""
Build = Callable[[Path], Built]
Plan = tuple[str, Build]


def _archive(sample: Sample) -> Path:
    assert sample.archive is not None
    return sample.archive


def _files(sample: Sample) -> list[str]:
    root = _archive(sample)
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def _size_of(name: str) -> int:
    return next(int(part) for part in Path(name).parts if part.isdecimal())


def _cells(content: bytes, dice: random.Random) -> bytes:
    """Put something hostile into a cell, a row or the header of a table."""
    lines = content.decode().splitlines()
    hostile = ["", "x", "1e400", "-1", "nan", "9" * 5000, "\x00", '"', "1,2,3,4,5,6", "0x10", "1_000", "é" * 1000]
    row = dice.randrange(len(lines))
    cells = lines[row].split(",")
    cells[dice.randrange(len(cells))] = dice.choice(hostile)
    lines[row] = ",".join(cells)
    return "\n".join(lines).encode()


def _deep(content: bytes, dice: random.Random) -> bytes:
    """Nest deeper than anyone can read, or give a number of thousands of digits."""
    return dice.choice(
        [b"[" * 100_000, b'{"batch_size": ' + b"9" * 5000 + b"}", b'{"a":' * 10_000, b"null", b"\xff\xfe"]
    )


def _file_of_tree(sample: Sample, dice: random.Random) -> Plan:
    """Change one file of an unpacked archive, or of a packed one."""
    name = dice.choice(_files(sample))
    edits = [*changes.EDITS, _deep] if name.endswith(".json") else [_cells, _cells, _deep]
    change = dice.choice([dice.choice(edits), dice.choice(edits), dice.choice(changes.BYTES)])
    content = change((_archive(sample) / name).read_bytes(), dice)
    suffix = dice.choice([None, *_PACKERS])

    def build(place: Path) -> Built:
        root = place / "archive"
        shutil.copytree(_archive(sample), root)
        (root / name).write_bytes(content)
        return (root if suffix is None else _packed(root, suffix)), {_size_of(name)}, False

    return f"{change.__name__} in {name}{suffix or ''}", build


def _packed(root: Path, suffix: str) -> Path:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        tar.add(root, arcname=".")
    path = root.with_name(f"archive{suffix}")
    path.write_bytes(_PACKERS[suffix](out.getvalue()))
    return path


_NAMES = [
    "../outside",
    "/tmp/outside",
    "a/../../outside",
    "x" * 5000,
    "a\nb",
    "\udcff",
    ".",
    "",
    "mnist/" * 300,
    "a\x1b[31m",
]


def _members(sample: Sample, dice: random.Random) -> Plan:
    """Add a member to a tar file that no archive has."""
    kind = dice.choice(
        [tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, b"x", b"L"]
    )
    known = dice.choice(_files(sample))
    name = dice.choice(
        [*_NAMES, known, f"{Path(known).parent}/study.json", f"{Path(known).parents[1]}/99999999999/study.json"]
    )
    size = dice.choice([0, 0, 10, 1 << 20, 1 << 40, (1 << 63) - 1, -1])
    suffix, comes_first = dice.choice(list(_PACKERS)), dice.random() < 0.5

    def build(place: Path) -> Built:
        whole = io.BytesIO()
        with tarfile.open(fileobj=whole, mode="w") as tar:
            tar.add(_archive(sample), arcname=".")
        end = len(whole.getvalue().rstrip(b"\0")) // 512 * 512 + 512
        added, content = _header(name, kind, size, str(place / BESIDE / "canary")), whole.getvalue()[:end]
        content = added + content if comes_first else content + added
        path = place / f"archive{suffix}"
        path.write_bytes(_PACKERS[suffix](content + bytes(1024)))
        return path, None, False

    return f"a member of type {kind!r}, {size} bytes, named {name[:40]!r}{suffix}", build


def _header(name: str, kind: bytes, size: int, target: str) -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, target, max(0, min(size, 8**11 - 1))
    head = bytearray(info.tobuf(tarfile.GNU_FORMAT, errors="surrogateescape"))
    if size != info.size:  # numbers that only the binary form can hold
        start = len(head) - 512
        head[start + 124 : start + 136] = b"\x80" + (size & (1 << 88) - 1).to_bytes(11, "big")
        head[start + 148 : start + 156] = b" " * 8
        head[start + 148 : start + 156] = b"%06o\0 " % sum(head[start : start + 512])
    body = bytes(min(max(size, 0), 1 << 20))
    return bytes(head) + body + bytes(-len(body) % 512)


def _stream(sample: Sample, dice: random.Random) -> Plan:
    """Cut a packed archive, turn a bit of it, or put something behind it."""
    suffix, change = (
        dice.choice(list(_PACKERS)),
        dice.choice([changes.cut, changes.cut, changes.flip_bit, changes.append]),
    )
    is_proved = suffix in (".tar.gz", ".tar.bz2", ".tar.xz") and change is changes.flip_bit

    def build(place: Path) -> Built:
        root = place / "archive"
        shutil.copytree(_archive(sample), root)
        path = _packed(root, suffix)
        shutil.rmtree(root)
        path.write_bytes(change(path.read_bytes(), dice))
        return path, None if not is_proved else set(), change is changes.cut

    return f"{change.__name__} of {suffix}", build


def _judge(sample: Sample, build: Build, place: Path) -> Iterator[str]:
    (place / BESIDE).mkdir()
    (place / BESIDE / "canary").write_text("still here\n")
    path, touched, must_refuse = build(place)
    before, began, lab = snapshot(place), time.monotonic(), place / "lab"
    got = ask("import", path, "--lab", lab, "--workers", 1)
    seconds = time.monotonic() - began
    yield from _form(got)
    if seconds > MOST_SECONDS:
        yield f"the import took {seconds:.0f} seconds"
    after = {name: what for name, what in snapshot(place).items() if name.partition("/")[0] != "lab"}
    yield from (f"written outside the lab: {line}" for line in differences(before, after))
    if must_refuse and got.code == 0 and not _is_as_ever(sample, lab):
        yield "an archive that was cut is imported"
    yield from _answers(sample, lab, got, touched)


def _is_as_ever(sample: Sample, lab: Path) -> bool:
    """Return whether all studies came out as from the whole archive: only what follows its end was cut."""
    return _rows(lab) == _sound_rows(sample)


def _form(got: Answer) -> Iterator[str]:
    if got.code is None:
        yield f"import: traceback: {got.err[-1500:]}"
    elif got.code not in (0, 1, 2):
        yield f"import ends with exit code {got.code}"
    for line in got.lines if got.code is not None else ():
        if not line.startswith("batchlab: ") or not line.isprintable() or len(line) > MOST_LINE:
            yield f"import says what is no single line of its own: {line[:300]!r}"
    if got.code == 2 and len(got.lines) != 1:
        yield f"import refuses with {len(got.lines)} lines: {got.err[:500]}"


def _answers(sample: Sample, lab: Path, got: Answer, touched: set[int] | None) -> Iterator[str]:
    """What was imported must be sound, and studies that nobody touched be those of the sound archive."""
    if not (lab / "lab.json").exists():
        return
    look = ask("verify", "--lab", lab)
    if look.code != 0:
        yield f"verify finds damage after an import: {look.out[-600:]} {look.err[-600:]}"
    if touched is None or got.code != 0:
        return
    told, true = _rows(lab), _sound_rows(sample)
    for size, row in true.items():
        if size not in touched and told.get(size) != row:
            yield f"batch size {size} is sound and answers otherwise: {told.get(size)}"


def _rows(lab: Path) -> dict[int, object]:
    names = [path.name for path in (lab / "sweeps").iterdir()] if (lab / "sweeps").is_dir() else []
    answers = [ask("curve", "--lab", lab, "--sweep", name, "--json") for name in names]
    rows = [row for answer in answers if answer.out for row in json.loads(answer.out)["rows"]]
    return {row["batch_size"]: row for row in rows}


@cache
def _sound_rows(sample: Sample) -> dict[int, object]:
    return _rows(sample.lab)
