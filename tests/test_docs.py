"""The documentation keeps up with the code: commands and options in docs/cli.md, tests in docs/reliability.md.

And docstrings with the folders: a module that one of them names is there.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer

from batchlab.cli import app
from batchlab.core.sweep import spec_key

TESTS = Path(__file__).parent
ROOT = TESTS.parent
SOURCE = ROOT / "src" / "batchlab"
PAGE = ROOT / "docs" / "cli.md"
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]
OPTIONS = sorted(
    (name, option)
    for name, command in COMMANDS.items()
    for parameter in command.params
    for option in parameter.opts
    if option.startswith("--")
)


def section(command: str) -> str:
    """Return the part of the page under the heading that names the command."""
    text = PAGE.read_text()
    headings = [line for line in text.splitlines() if line.startswith("#") and f"batchlab {command}" in line]
    assert len(headings) == 1, f"docs/cli.md has {len(headings)} headings with `batchlab {command}`; give it one"
    level = headings[0].split()[0]
    return text.partition(headings[0])[2].partition(f"\n{level} ")[0]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_documented(command):
    assert section(command).strip()


@pytest.mark.parametrize(("command", "option"), OPTIONS)
def test_every_option_is_documented_with_its_command(command, option):
    assert option in section(command)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_and_parameter_has_help(command):
    assert COMMANDS[command].help
    assert all(parameter.help for parameter in COMMANDS[command].params if parameter.name != "help")


def test_exit_codes_are_documented():
    text = PAGE.read_text()

    assert all(f"`{code}`" in text or f"| {code} |" in text for code in (0, 1, 2, 75))


def test_every_test_that_the_page_of_promises_names_exists():
    promised = set(re.findall(r"`(test_\w+)`", (ROOT / "docs" / "reliability.md").read_text()))
    written = {name for path in TESTS.rglob("*.py") for name in re.findall(r"def (test_\w+)", path.read_text())}

    assert len(promised) > 100
    assert promised - written == set()


def test_every_module_that_the_source_names_exists():
    rooms = "|".join(path.name for path in SOURCE.iterdir() if path.is_dir())
    named = {
        (str(path.relative_to(SOURCE)), name)
        for path in SOURCE.rglob("*.py")
        for name in re.findall(rf"`((?:{rooms})(?:\.\w+)+)`", path.read_text())
    }
    of_specs = {(path, name) for path, name in named if spec_key(name.rpartition(".")[2]) == name}

    assert len(named - of_specs) > 30
    assert [] == sorted(f"{path}: {name}" for path, name in named - of_specs if not is_module(name))


def is_module(name: str) -> bool:
    """Return whether a dotted name is that of a folder, a file, or what stands in a file."""
    place = SOURCE.joinpath(*name.split("."))
    above = place.parent.with_suffix(".py")
    if above.is_file():
        return re.search(rf"\b{place.name}\b", above.read_text()) is not None
    return place.is_dir() or place.with_suffix(".py").is_file()
