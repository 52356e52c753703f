"""Each dependency has its reason beside it, and the files that the reason names import it."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
IMPORTED_AS = {"scikit-learn": "sklearn", "pillow": "PIL"}


def reasons():
    """Return each dependency's import name and what its line in pyproject.toml says of it."""
    lines = (ROOT / "pyproject.toml").read_text().split("[project.scripts]")[0].splitlines()
    found = [re.fullmatch(r'\s+"([\w-]+)[>=\d.]+",\s+# (.+)', line) for line in lines]
    return [(IMPORTED_AS.get(each[1], each[1]), each[2]) for each in found if each]


def test_the_files_that_a_reason_names_import_the_dependency():
    named = [
        (name, path)
        for name, reason in reasons()
        for path in re.findall(r"\b(?:\w+/)+\w+\.py", reason)
        if not path.startswith("benchmarks/")
    ]
    wrong = [
        f"{name}: {path}"
        for name, path in named
        if not re.search(rf"\b(import|from) {name}\b", _text(ROOT / "src" / "batchlab" / path))
    ]

    assert len(named) >= 12
    assert not wrong, "\n".join(wrong)


def _text(path):
    return path.read_text() if path.exists() else ""
