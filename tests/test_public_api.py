"""The front door: every public name can be imported and says what it is."""

from __future__ import annotations

import inspect
from importlib import resources
from importlib.metadata import version

import pytest

import batchlab
from batchlab import errors

PUBLIC = [
    "BatchlabError",
    "Curve",
    "Equivalence",
    "EquivalenceCallback",
    "Goal",
    "Lab",
    "LoopSweep",
    "Measurements",
    "Observer",
    "Point",
    "Program",
    "Study",
    "StudyResult",
    "Sweep",
    "TorchSweep",
    "Trainer",
    "Trial",
    "UpTo",
    "Workload",
    "assert_equivalent",
    "check_gradients",
    "check_trainer",
    "confirm_sweep",
    "equivalence",
    "load_sweep",
    "merge_labs",
    "register",
    "run_sweep",
    "summarise",
]


def test_the_public_names_are_these():
    """A name that goes is a break for somebody: change this list on purpose."""
    assert batchlab.__all__ == PUBLIC
    assert dir(batchlab) == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_there_and_documented(name):
    value = getattr(batchlab, name)

    assert value.__name__ == name
    assert inspect.getdoc(value), f"{name} has no docstring"
    assert value.__doc__ is not None


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_method_is_documented(name):
    value = getattr(batchlab, name)
    own = (
        {key: member for key, member in vars(value).items() if not key.startswith("_")}
        if inspect.isclass(value)
        else {}
    )

    for key, member in own.items():
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if inspect.isfunction(function) or isinstance(function, property):
            assert function.__doc__, f"{name}.{key} has no docstring"


@pytest.mark.parametrize("name", ["run_sweep", "load_sweep", "summarise", "check_trainer"])
def test_public_functions_are_typed(name):
    signature = inspect.signature(getattr(batchlab, name))

    assert signature.return_annotation is not inspect.Signature.empty
    assert all(parameter.annotation is not parameter.empty for parameter in signature.parameters.values())


def test_the_version_is_that_of_the_installed_package():
    assert batchlab.__version__ == version("batchlab")


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'batchlab' has no attribute 'run_sweeps'"):
        batchlab.run_sweeps  # noqa: B018


def error_classes():
    return [value for value in vars(errors).values() if inspect.isclass(value) and issubclass(value, Exception)]


@pytest.mark.parametrize("error", error_classes(), ids=lambda error: error.__name__)
def test_every_error_can_be_caught_as_ours_and_has_an_exit_code(error):
    assert issubclass(error, batchlab.BatchlabError)
    assert error.exit_code in (1, 2, 75)
    assert error.__name__ in (errors.__doc__ or "")
    assert str(error("one line")) == "one line"


@pytest.mark.parametrize(
    ("error", "builtin", "exit_code"),
    [
        (errors.SpecError, ValueError, 2),
        (errors.TrainerError, ValueError, 2),
        (errors.DataError, ValueError, 2),
        (errors.LabError, ValueError, 2),
        (errors.LabLockedError, errors.LabError, 2),
        (errors.NewerLabError, errors.LabError, 2),
        (errors.MisnamedError, errors.DamagedError, 1),
        (errors.OlderSpecError, errors.DamagedError, 1),
        (errors.StorageError, OSError, 2),
        (errors.TrialError, RuntimeError, 1),
        (errors.Interrupted, Exception, 75),
    ],
)
def test_errors_are_what_one_would_catch(error, builtin, exit_code):
    assert issubclass(error, builtin)
    assert error.exit_code == exit_code


def test_type_checkers_are_told_that_the_package_has_types():
    assert (resources.files("batchlab") / "py.typed").is_file()
