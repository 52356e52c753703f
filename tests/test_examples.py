"""The examples run as they are, and the documents show the code and the commands that there are."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

import batchlab
from batchlab.cli import app
from batchlab.engine.base import Point
from batchlab.own.python_file import load_own_sweep
from batchlab.run.run_sweep import run_sweep
from batchlab.spec.load import load_sweep

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
COMMANDS = typer.main.get_command(app).commands


def run_python(*arguments, folder):
    """Run Python in `folder` with the batchlab under test, caches below the folder; return what it printed."""
    source = str(Path(batchlab.__file__).resolve().parents[1])
    path = os.pathsep.join([source, *filter(None, sys.path)])  # what is installed elsewhere is found there too
    environment = {**os.environ, "PYTHONPATH": path, "XDG_CACHE_HOME": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    return done.stdout


def blocks(document, language):
    return re.findall(rf"```{language}\n(.*?)```", document.read_text(), flags=re.DOTALL)


@pytest.mark.slow
def test_first_study_answers_for_every_batch_size(tmp_path):
    """Its numbers are the same only to rounding on another machine, so they are not compared."""
    printed = run_python(str(ROOT / "examples" / "01_first_study.py"), folder=tmp_path).splitlines()

    assert ["1", "8", "64", "512"] == [line.split()[0] for line in printed[2:6]]
    assert "critical batch size" in printed[6]


def test_own_trainer_prints_what_the_docs_show(tmp_path):
    printed = run_python(str(ROOT / "examples" / "02_own_trainer.py"), folder=tmp_path)

    assert f"$ python examples/02_own_trainer.py\n{printed}" in blocks(ROOT / "docs" / "extending.md", "console")


@pytest.mark.slow
def test_observer_sees_larger_gradients_of_smaller_batches(tmp_path):
    printed = run_python(str(ROOT / "examples" / "08_observer.py"), folder=tmp_path)

    lines = [re.findall(r"is (\S+), .* of 4 (\S+)", line)[0] for line in printed.splitlines()]
    assert len(lines) == 2
    assert all(float(whole) < float(part) for whole, part in lines)


def test_equivalence_prints_what_the_docs_show(tmp_path):
    wrong, right = run_python(str(ROOT / "examples" / "09_equivalence.py"), folder=tmp_path).split("\n\n")

    assert f"$ python examples/09_equivalence.py\n{wrong}\n...\n" in blocks(ROOT / "docs" / "equivalence.md", "console")
    assert right.startswith("Equivalent: 10 ways to cut a batch of 8 examples")


OWN_EXAMPLES = {
    "03_own_network.py": "moons/Net/adamw",
    "04_hugging_face.py": "halves/BertForSequenceClassification/adamw",
    "05_training_step.py": "even-sums/Adder/adamw",
}


def needed_by(example):
    """Skip where the packages of an extra are not installed."""
    if "hugging_face" in example:
        pytest.importorskip("transformers")
        pytest.importorskip("datasets")


@pytest.mark.parametrize(("example", "workload"), OWN_EXAMPLES.items())
@pytest.mark.filterwarnings("default")  # other people's packages may warn
def test_a_network_of_ones_own_learns(example, workload, one_thread):
    needed_by(example)
    sweep = load_own_sweep(ROOT / "examples" / example)
    study = sweep.spec.study(32)
    point = Point(0, study.metaparameters({"learning_rate": 0.02, "weight_decay": 0.0}))
    program = sweep.trainer.program(study, [point])
    before = program.evaluate()["val/error"]

    while program.step < 120:
        program.advance(120)

    assert sweep.spec.workload.name == workload
    assert program.evaluate()["val/error"] < 0.5 * before


def test_the_first_network_of_ones_own_takes_as_few_lines_as_the_docs_count(tmp_path, one_thread):
    page = ROOT / "docs" / "your-own-network.md"
    (code, *_), (told,) = blocks(page, "python"), re.findall(r"(\d+) lines of Python and one command", page.read_text())
    (tmp_path / "moons.py").write_text(code)
    sweep = load_own_sweep(tmp_path / "moons.py")
    study = sweep.spec.study(32)
    program = sweep.trainer.program(study, [Point(0, study.metaparameters({"learning_rate": 0.02, "weight_decay": 0}))])

    while program.step < 400:
        program.advance(400)

    assert int(told) == len(list(filter(str.strip, code.splitlines())))
    assert int(told) + 1 <= 20
    assert program.evaluate()["val/error"] < 0.03


@pytest.mark.slow
@pytest.mark.parametrize(("example", "workload"), OWN_EXAMPLES.items())
def test_a_network_of_ones_own_is_studied_by_its_file(example, workload, tmp_path):
    needed_by(example)

    printed = run_python(str(ROOT / "examples" / example), folder=tmp_path)

    assert printed.startswith(f"{workload}: steps to val/error < ")


@pytest.mark.slow
def test_own_loop_answers_for_every_batch_size(tmp_path):
    """Of its trials that diverge NumPy says nothing."""
    printed = run_python("-W", "error::RuntimeWarning", str(ROOT / "examples" / "06_own_loop.py"), folder=tmp_path)

    assert [line.split()[0] for line in printed.splitlines()[2:7]] == ["1", "4", "16", "64", "256"]


def test_own_loop_is_the_one_that_the_docs_show():
    code = blocks(ROOT / "docs" / "your-own-loop.md", "python")[0]

    assert code.strip() in (ROOT / "examples" / "06_own_loop.py").read_text()


def test_own_program_is_run_as_the_docs_show(tmp_path):
    shutil.copytree(ROOT / "examples" / "07_own_program", tmp_path / "program")
    spec = tmp_path / "program" / "sweep.toml"
    spec.write_text(spec.read_text().replace('"python train.py', f'"{sys.executable} train.py'))
    printed = run_python("-m", "batchlab", "run", "sweep.toml", "--lab", "lab", folder=tmp_path / "program")

    assert (
        blocks(ROOT / "docs" / "your-own-loop.md", "toml")[0]
        in (ROOT / "examples" / "07_own_program" / "sweep.toml").read_text()
    )
    assert [line.split()[0] for line in printed.splitlines()[2:5]] == ["1", "8", "64"]


@pytest.mark.parametrize(
    ("document", "example"),
    [
        ("README.md", "01_first_study.py"),
        ("docs/extending.md", "02_own_trainer.py"),
        ("docs/extending.md", "08_observer.py"),
    ],
)
def test_documents_show_the_examples_verbatim(document, example):
    assert (ROOT / "examples" / example).read_text() in blocks(ROOT / document, "python")


@pytest.mark.slow
def test_code_of_the_lab_format_page_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    sweep = load_sweep("digits", ["sweep.trials=2", "sweep.batch_sizes=[32, 64]", "sweep.max_steps=1000"])
    run_sweep(sweep, tmp_path / "lab", num_workers=1)

    for code in blocks(ROOT / "docs" / "lab-format.md", "python"):
        assert "64" in run_python("-c", code, folder=tmp_path)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_on_the_cli_page(name):
    """How help is laid out depends on typer's version, so words are compared, not lines."""
    page = (ROOT / "docs" / "cli.md").read_text()
    section = page.split(f"<!-- help: batchlab {name} -->\n```text\n")[1].split("```")[0]

    assert " ".join(COMMANDS[name].help.split()) in " ".join(section.split())
    for parameter in COMMANDS[name].params:
        assert parameter.opts[0] in section


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_links_lead_to_files_and_headings(document):
    for link in re.findall(r"\]\(([^)\s]+)\)", document.read_text()):
        if link.startswith("http"):
            continue
        path, _, heading = link.partition("#")
        target = document.parent / path if path else document

        assert target.exists(), link
        assert not heading or heading in headings(target), link


def headings(document):
    titles = re.findall(r"^#+ (.+)$", document.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
