"""A study of one's own in a file: executed, trained by workers, refused once it is another."""

from __future__ import annotations

import pickle
import sys

import pytest

from batchlab.engine.base import Point
from batchlab.errors import InputError, LabError, TrainerError
from batchlab.own.python_file import MODULE, FileTrainer, load_own_sweep
from batchlab.run.run_sweep import run_sweep
from batchlab.store.lab import Lab


def test_the_one_sweep_of_a_file_is_found(own_file):
    own = load_own_sweep(own_file)

    assert own.spec.workload.name == "own/Net/adamw"
    assert own.file == own_file


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x = 1", "must make one batchlab.TorchSweep, or LoopSweep, and give it a name at its top level; it has none"),
        ("other = batchlab.TorchSweep(**vars())", "cannot be executed: "),
        (
            "import batchlab\nbatchlab.TorchSweep(name='a', model=3, train=0, val=0, loss=max, search_space={})",
            "own.py: TorchSweep: `model` is no function: give one, such as `lambda: Net()`.",
        ),
        ("1 / 0", "cannot be executed: ZeroDivisionError: division by zero (line 1 of"),
        ("\ndef f(:", "cannot be executed: SyntaxError: invalid syntax (line 2 of"),
        ("import sys\nsys.exit()", "own.py ends itself by sys.exit() before it is read to its end: put that below"),
        ("raise SystemExit('done')", "own.py ends itself by sys.exit(done) before"),
    ],
)
def test_a_file_without_one_is_told_in_one_sentence(tmp_path, text, sentence):
    (tmp_path / "own.py").write_text(text)

    with pytest.raises(InputError) as caught:
        load_own_sweep(tmp_path / "own.py")

    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_two_sweeps_in_a_file_are_refused(own_file):
    own_file.write_text(own_file.read_text() + "\nimport copy\nsecond = copy.copy(sweep)\n")

    with pytest.raises(InputError, match="it has 2 of them"):
        load_own_sweep(own_file)


def test_a_second_name_for_the_same_sweep_is_fine(own_file):
    own_file.write_text(own_file.read_text() + "\nsame = sweep\n")

    assert load_own_sweep(own_file).spec.name == "own"


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(InputError, match=r"There is no file .*own.py"):
        load_own_sweep(tmp_path / "own.py")


def test_files_beside_it_can_be_imported_at_any_time(own_file):
    """By its functions too, as when it is run by Python; but behind whatever batchlab may import."""
    for name, text in {"beside_at_once": "Net = 3", "beside_later": "SIZE = 5"}.items():
        (own_file.parent / f"{name}.py").write_text(text)
    own_file.write_text(f"import beside_at_once\n{own_file.read_text()}\ndef later():\n    import beside_later\n")
    before = list(sys.path)

    try:
        load_own_sweep(own_file)
        sys.modules[MODULE].later()

        assert sys.modules["beside_later"].SIZE == 5
        assert sys.path == [*before, str(own_file.parent)]
    finally:
        sys.path[:] = before


def test_what_is_sent_to_a_worker_is_the_place_of_the_file(own_file):
    trainer = FileTrainer(own_file, load_own_sweep(own_file))

    sent = pickle.dumps(trainer)

    assert len(sent) < 1000
    assert pickle.loads(sent).label == trainer.label


def test_what_was_changed_of_its_spec_reaches_the_workers(own_file):
    own = load_own_sweep(own_file)
    own.change(["engine.precision=bfloat16", "workload.optimizer=sgd"])
    here = FileTrainer(own_file, own)
    there = pickle.loads(pickle.dumps(here))
    study = own.spec.study(4)

    losses = [
        trainer.program(study, [Point(0, {"learning_rate": 0.1})]).evaluate()["val/loss"]
        for trainer in (here, there, load_own_sweep(own_file).trainer)
    ]

    assert losses[0] == losses[1] != losses[2]


def test_workers_do_not_train_another_sweep_of_the_file_than_the_one_that_is_run(own_file):
    own = load_own_sweep(own_file)
    vars(own)["spec"] = own.spec.model_copy(update={"name": "second"})
    sent = pickle.dumps(FileTrainer(own_file, own))

    with pytest.raises(TrainerError, match="makes another sweep, own, than the one that is run, second"):
        pickle.loads(sent).check(own.spec.study(4))


def test_a_sweep_that_a_file_beside_it_makes_is_that_of_the_file_that_is_run(own_file, tmp_path):
    (tmp_path / "made_by.py").write_text("from own import sweep\n")

    assert load_own_sweep(tmp_path / "made_by.py").file == tmp_path / "made_by.py"


def test_a_file_that_changes_while_it_is_run_is_noticed_by_the_next_worker(own_file):
    sent = pickle.dumps(FileTrainer(own_file, load_own_sweep(own_file)))
    own_file.write_text(own_file.read_text() + "\n")

    with pytest.raises(TrainerError, match="was changed while it was run"):
        pickle.loads(sent).metrics(None)


def test_settings_change_its_spec(own_file):
    own = load_own_sweep(own_file)
    own.change(["sweep.trials=5", "search_space.learning_rate={values=[0.1]}"])

    assert own.spec.search.trials == 5
    assert own.spec.search_space["learning_rate"].values == (0.1,)


@pytest.mark.slow
def test_workers_train_it_and_a_changed_file_is_refused_until_it_is_meant(own_file, tmp_path):
    lab = tmp_path / "lab"
    summary = run_sweep(load_own_sweep(own_file), lab, num_workers=1)
    own_file.write_text(own_file.read_text().replace("trials=2", "trials=3"))
    larger = load_own_sweep(own_file)

    with pytest.raises(
        LabError, match="and that file has changed since: .* go on with the changed file: --changed-code"
    ):
        run_sweep(larger, lab, num_workers=1)
    grown = run_sweep(larger, lab, num_workers=1, changed_code=True)

    assert [row.complete for row in summary.rows] == [2, 2]
    assert [row.complete for row in grown.rows] == [3, 3]
    assert Lab.open(lab).study_folder("own", 4).record().trainer == larger.make_trainer().label
