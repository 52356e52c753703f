"""Ways in which one file goes bad: from a flipped bit to an edit that is still good JSON."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Place = tuple[Any, ...]
Container = Any
ByteChange = Callable[[bytes, random.Random], bytes]


def flip_bit(content: bytes, chance: random.Random) -> bytes:
    """Turn one bit."""
    place = chance.randrange(len(content))
    return content[:place] + bytes([content[place] ^ 1 << chance.randrange(8)]) + content[place + 1 :]


def cut(content: bytes, chance: random.Random) -> bytes:
    """Leave the first part, often all but a few bytes."""
    return content[: -chance.randint(1, 8)] if chance.random() < 0.3 else content[: chance.randrange(len(content))]


def append(content: bytes, chance: random.Random) -> bytes:
    """Add something at the end: white space, noise, or the same once more."""
    return content + chance.choice([b"\n", b" ", chance.randbytes(17), content, b"{}"])


def zero_block(content: bytes, chance: random.Random) -> bytes:
    """Let a block be zeros, as a disk does."""
    start, size = chance.randrange(len(content)), chance.choice([1, 16, 512, 4096])
    size = min(size, len(content) - start)
    return content[:start] + bytes(size) + content[start + size :]


def repeat_block(content: bytes, chance: random.Random) -> bytes:
    """Have a block twice."""
    start = chance.randrange(len(content))
    end = min(len(content), start + chance.choice([1, 16, 512]))
    return content[:end] + content[start:]


def empty(content: bytes, chance: random.Random) -> bytes:
    """Leave nothing."""
    return b""


def noise(content: bytes, chance: random.Random) -> bytes:
    """Have something else of the same size."""
    return chance.randbytes(len(content))


BYTES: list[ByteChange] = [flip_bit, flip_bit, cut, append, zero_block, repeat_block, empty, noise]


def change_digit(content: bytes, chance: random.Random) -> bytes:
    """Change one digit of a number, or of a text, so that it is still JSON."""
    places = [match.start() for match in re.finditer(rb"[0-9]", content)]
    for place in chance.sample(places, min(len(places), 20)):
        digits = [digit for digit in b"123456789" if digit != content[place]]
        changed = content[:place] + bytes([chance.choice(digits)]) + content[place + 1 :]
        if _is_json(changed):
            return changed
    return content


def change_value(content: bytes, chance: random.Random) -> bytes:
    """Change one value of the JSON to another of the same kind."""
    data = json.loads(content)
    leaves = [place for place, value in _values(data) if not isinstance(value, (dict, list))]
    return _with(data, chance.choice(leaves), _another, chance) if leaves else content


def change_kind(content: bytes, chance: random.Random) -> bytes:
    """Change one value of the JSON, a table or a list perhaps, to one of another kind."""
    data = json.loads(content)
    places = [place for place, _ in _values(data)]
    return _with(data, chance.choice(places), _another_kind, chance) if places else content


def remove_value(content: bytes, chance: random.Random) -> bytes:
    """Take a key, or an element of a list, away."""
    data = json.loads(content)
    places = [place for place, _ in _values(data)]
    if places:
        *above, last = chance.choice(places)
        del _at(data, above)[last]
    return _text(data)


def repeat_value(content: bytes, chance: random.Random) -> bytes:
    """Have an element of a list, a trial say, twice."""
    data = json.loads(content)
    lists = [value for _, value in [((), data), *_values(data)] if isinstance(value, list) and value]
    if lists:
        chosen = chance.choice(lists)
        index = chance.randrange(len(chosen))
        chosen.insert(index, chosen[index])
    return _text(data)


def change_status(content: bytes, chance: random.Random) -> bytes:
    """Let a trial have ended otherwise."""
    words = [b'"COMPLETE"', b'"INFEASIBLE"', b'"INCOMPLETE"', b'"finished"', b'"running"']
    found = [word for word in words if word in content]
    if not found:
        return change_value(content, chance)
    word = chance.choice(found)
    return content.replace(word, chance.choice([each for each in words if each != word]), 1)


def encode_again(content: bytes, chance: random.Random) -> bytes:
    """Write the same JSON in another way, as an editor may."""
    return json.dumps(json.loads(content), indent=chance.choice([None, 2, 4])).encode()


EDITS: list[ByteChange] = [
    change_digit,
    change_digit,
    change_value,
    change_kind,
    remove_value,
    repeat_value,
    change_status,
    encode_again,
]


def _is_json(content: bytes) -> bool:
    try:
        json.loads(content)
    except ValueError:
        return False
    return True


def _values(data: Container, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in list(items):
        yield (*place, key), value
        yield from _values(value, (*place, key))


def _at(data: Container, place: list[Any]) -> Container:
    for key in place:
        data = data[key]
    return data


def _with(data: Container, place: Place, another: Callable[[Any, random.Random], Any], chance: random.Random) -> bytes:
    *above, last = place
    holder = _at(data, above)
    holder[last] = another(holder[last], chance)
    return _text(data)


def _another(value: Any, chance: random.Random) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return chance.choice([value + 1, value - 1, -value - 1, value * 10 + 1, 0 if value else 2, 10**30])
    if isinstance(value, float):
        return chance.choice([value * 2 + 1, value / 3 + 0.1, -value - 1, 1e308, 1e-308])
    if isinstance(value, str):
        return chance.choice(
            [value + "x", value[:-1], "", "../" + value, value.upper() + "\x1b[31m", "\x00", "x" * 9999]
        )
    return 0


def _another_kind(value: Any, chance: random.Random) -> Any:
    kinds: list[Any] = [None, True, 7, 0.5, "text", [], {}, [value], {"a": value}, -1, float("nan"), float("inf")]
    return chance.choice([each for each in kinds if type(each) is not type(value)])


def _text(data: Container) -> bytes:
    return json.dumps(data, indent=1).encode() + b"\n"


PathChange = Callable[[Path, Path, random.Random], None]
"""Changes what lies at a path; the second path is a folder beside the lab that is free to use."""


def remove(path: Path, beside: Path, chance: random.Random) -> None:
    """Remove the file."""
    path.unlink()


def folder_instead(path: Path, beside: Path, chance: random.Random) -> None:
    """Have a folder in its place."""
    path.unlink()
    path.mkdir()


def pipe_instead(path: Path, beside: Path, chance: random.Random) -> None:
    """Have a pipe in its place that nobody ever writes to."""
    path.unlink()
    os.mkfifo(path)


def link_to_itself(path: Path, beside: Path, chance: random.Random) -> None:
    """Have a link in its place that leads nowhere, or round and round."""
    path.unlink()
    path.symlink_to(chance.choice([path.name, "nowhere", str(beside / "nowhere")]))


def link_to_device(path: Path, beside: Path, chance: random.Random) -> None:
    """Have a link to a device without an end in its place."""
    path.unlink()
    path.symlink_to(chance.choice(["/dev/zero", "/dev/random", "/dev/full"]))


def link_to_same(path: Path, beside: Path, chance: random.Random) -> None:
    """Have a link in its place to a file elsewhere with the same content."""
    beside.mkdir(exist_ok=True)
    shutil.move(path, beside / "moved")
    path.symlink_to(beside / "moved")


PATHS: list[PathChange] = [
    remove,
    remove,
    folder_instead,
    pipe_instead,
    link_to_itself,
    link_to_device,
    link_to_same,
]
