"""What comes from outside the package, an optimizer, a model, a figure, is one file and one call."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import batchlab
from batchlab.core.entry import add_entry, one_of
from batchlab.errors import InputError
from batchlab.models.registry import ModelEntry
from batchlab.optim.registry import OptimizerEntry, ScheduleEntry
from batchlab.plots.registry import FIGURES, Figure
from batchlab.report.sections import SectionEntry

CODE = '''
"""One of each, in a file of its own."""

from batchlab.core.entry import one_of
from batchlab.models.base import Network
from batchlab.models.layers import Dense
from batchlab.models.registry import ModelEntry
from batchlab.optim.base import Optimizer
from batchlab.optim.metaparameter import LEARNING_RATE, POSITIVE, Metaparameter
from batchlab.optim.registry import OptimizerEntry, ScheduleEntry
from batchlab.plots.registry import Figure
from batchlab.plots.steps_curve import steps_curve_data, steps_curve_figure
from batchlab.report.blocks import Paragraph, Section
from batchlab.report.sections import SectionEntry


def signed(layout, power):
    def update(parameters, gradients, state, now):
        step = gradients.sign() if power == "none" else gradients.sign() * gradients.abs().sqrt()
        parameters.addcmul_(step, now["learning_rate"], value=-1)
    return Optimizer(lambda parameters: {}, update)


def halving():
    def schedule(values, clocks, horizon):
        return {"learning_rate": values["learning_rate"] * 0.5 ** (clocks.step[:, None] // values["period"])}
    return schedule


class TwoLayers(Network):
    def __init__(self, input_shape, num_classes, width):
        super().__init__()
        self.first, self.second = Dense(64, width), Dense(width, num_classes)

    def forward(self, images):
        return self.second(self.first(images.flatten(1)).relu())


def motto(findings, anchor):
    return Section("Motto", [Paragraph(f"{findings.summary.workload} was seen from outside.")])


ENTRIES = [
    OptimizerEntry("signed", __name__, "signed", (LEARNING_RATE,), settled={"power": "none"},
                   options={"power": one_of("none", "root")}),
    ScheduleEntry("halving", __name__, "halving", (Metaparameter("period", POSITIVE, 50.0),)),
    ModelEntry("two_layers", __name__, "TwoLayers", settled={"width": 32}),
    Figure(name="outside", needs="sweep", data=steps_curve_data, draw=steps_curve_figure),
    SectionEntry("motto", motto),
]
'''
STUDY = """
import sys
import batchlab
from outside_code import ENTRIES

for entry in ENTRIES:
    batchlab.register(entry)

if __name__ == "__main__":
    from batchlab.cli import main

    sweep = batchlab.load_sweep("spec.toml")
    print(batchlab.run_sweep(sweep, "lab", num_workers=1))
    for arguments in (["figure", "outside", "--lab", "lab"], ["report", "--lab", "lab", "--out", "report.html"]):
        sys.argv = ["batchlab", *arguments]
        try:
            main()
        except SystemExit as end:
            assert not end.code, end.code
"""
SPEC = """
name = "outside"
[workload]
dataset = "digits"
model = "two_layers"
optimizer = {name = "signed", power = "root"}
schedule = "halving"
[sweep]
batch_sizes = [16]
trials = 2
max_steps = 100
goal = "val/classification_error < 0.5"
[search_space]
learning_rate = {min = 1e-3, max = 1e-1, scale = "log"}
"""


def test_one_of_each_from_outside_is_trained_drawn_and_reported(tmp_path):
    for name, text in {"outside_code.py": CODE, "study.py": STUDY, "spec.toml": SPEC}.items():
        (tmp_path / name).write_text(text)
    source = str(Path(batchlab.__file__).resolve().parents[1])
    environment = {**os.environ, "PYTHONPATH": source, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "study.py"], cwd=tmp_path, env=environment, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert "digits/two_layers/signed: steps to val/classification_error < 0.5" in done.stdout
    assert (tmp_path / "figures" / "outside-outside.svg").is_file()
    assert "digits/<wbr>two_layers" in (tmp_path / "report.html").read_text()
    assert "was seen from outside" in (tmp_path / "report.html").read_text()
    assert '"period": 50.0' in (tmp_path / "lab" / "sweeps" / "outside" / "sweep.json").read_text()


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        (OptimizerEntry("sgd", "math", "exp"), "There is already optimizer sgd: give yours another name"),
        (ScheduleEntry("constant", "math", "exp"), "There is already schedule constant"),
        (ModelEntry("lstm", "math", "exp"), "There is already model lstm"),
        (SectionEntry("fit", max), "There is already a section fit"),
        (Figure(name="compare", needs="sweep", data=max, draw=max), "There is already a figure compare"),
        (Figure(name="paper-all", needs="sweep", data=max, draw=max), "There is already a figure paper-all"),
        (
            ModelEntry("new", "no_such_module", "exp"),
            "model new cannot be registered: No module named 'no_such_module'",
        ),
        (ModelEntry("new", "math", "no_such"), "model new cannot be registered: module 'math' has no attribute"),
        ("sgd", "register(str): give one of OptimizerEntry, ScheduleEntry, ModelEntry, Figure, SectionEntry"),
    ],
)
def test_what_cannot_be_registered_is_one_sentence(entry, sentence):
    with pytest.raises(InputError) as caught:
        batchlab.register(entry)

    assert sentence in str(caught.value)


def test_an_entry_that_is_there_may_be_registered_again():
    batchlab.register(FIGURES["compare"])

    assert list(FIGURES).count("compare") == 1


def test_a_script_may_register_again_what_its_workers_import_under_another_name():
    """A worker imports the script as `__mp_main__`, and again to find its study."""
    registered = {}
    for module in ("__main__", "__mp_main__", "batchlab_own_study"):
        sys.modules.setdefault(module, sys.modules["__main__"])
        entry = OptimizerEntry("signed", module, "__name__", (), options={"kind": one_of("a", "b")})
        add_entry("optimizer", entry, registered)

    with pytest.raises(InputError, match="There is already optimizer signed"):
        add_entry("optimizer", OptimizerEntry("signed", "json", "loads", ()), registered)
