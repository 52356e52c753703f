"""TOML from outside: read within bounds, and one sentence for whatever is wrong with it."""

from __future__ import annotations

import codecs
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

from batchlab.errors import SpecError, plain, shown
from batchlab.files import read_bounded

Table = dict[str, Any]

MOST_BYTES = 1 << 18
"""Of a spec file; the longest of ours has 1,000."""

MOST_DEPTH = 32
"""Tables and lists within each other; a spec has seven."""

# The parser's time grows with the square of a key's parts. A key begins where nothing of one comes before.
_LONG_KEY = re.compile(rf"""(?<![\w"'-])(?:[\w"'-]+[ \t]*\.[ \t]*){{{MOST_DEPTH}}}""")


def read_toml(path: Path) -> Table:
    """Return what a TOML file holds; SpecError where it is none, or larger than any spec."""
    content, source = read_bounded(path, MOST_BYTES, SpecError), plain(str(path))
    if content.startswith(codecs.BOM_UTF8):
        raise SpecError(f"{source}: it begins with a byte order mark. Save it as UTF-8 without one.")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SpecError(f"{source}: cannot be read: it is no UTF-8 text (byte {error.start:,}).") from None
    try:
        return parse_toml(text)
    except ValueError as error:
        hint = _unquoted(text, str(error))
        raise SpecError(f"{source}: not valid TOML: {shown(str(error), 200)}{hint}.") from None


_NO_VALUE = re.compile(r"^Invalid value \(at line ([0-9]+), ")
_BARE = re.compile(r"""^\s*([\w.-]+)\s*=\s*([^\W\d][^"'#\[\]{}]*?)\s*(?:#.*)?$""")


def _unquoted(text: str, problem: str) -> str:
    """Return what to say of a line whose text has no quotes; nothing of any other problem.

    >>> _unquoted('[workload]\\nmodel = fc_128', "Invalid value (at line 2, column 9)")
    ': text needs quotes, model = "fc_128"'
    """
    place = _NO_VALUE.match(problem)
    bare = _BARE.match(text.split("\n")[int(place[1]) - 1]) if place else None
    return f': text needs quotes, {shown(bare[1])} = "{shown(bare[2])}"' if bare else ""


def parse_toml(text: str) -> Table:
    """Return the tables that a text writes; ValueError says what is wrong with it."""
    if _LONG_KEY.search(text):
        raise ValueError(f"a key has more than {MOST_DEPTH} parts")
    try:
        data = tomllib.loads(text)
    except RecursionError:
        raise ValueError(f"lists or tables are nested more than {MOST_DEPTH} deep") from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:  # Python reads no longer numbers
        raise ValueError(f"a number has more than {sys.get_int_max_str_digits():,} digits") from None
    if not _is_shallow(data):
        raise ValueError(f"lists or tables are nested more than {MOST_DEPTH} deep")
    return data


def _is_shallow(data: Any) -> bool:
    level = [data]
    for _ in range(MOST_DEPTH):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return True
    return False


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
