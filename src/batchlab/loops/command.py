"""A loop that is a program: its command line, and the trainer that runs it.

The command is split once, as a shell would, and no shell sees it. `{name}` stands for what the trial is told: a
placeholder that is unknown is refused, and so is a trial's value that the command does not use.
"""

from __future__ import annotations

import re
import shlex
import shutil
import signal
from collections.abc import Generator, Iterable, Mapping
from pathlib import Path

from batchlab.core.study import Study
from batchlab.core.workload import OwnLoop
from batchlab.engine.base import Point
from batchlab.errors import SpecError, TrainerError, TrialError, shown, unknown_name
from batchlab.loops.base import RESERVED, LoopTrainer, Started, given_names, name_of, told, untold
from batchlab.loops.child import Child
from batchlab.loops.report import Patterns, Report, make_report, read_by_pattern, read_json_line
from batchlab.loops.resources import trial_variables
from batchlab.loops.tail import Tail

OUTPUT = "output.txt"
SECONDS = 0.1
"""Between two looks at what a program has printed."""

_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


class CommandTrainer(LoopTrainer):
    """Trains by running a program once for each trial, and reads what it reports."""

    def __init__(self, workload: OwnLoop) -> None:
        self._workload = workload
        self.resumes = "checkpoint" in _placeholders([workload.command or ""])

    def check(self, study: Study) -> None:
        """Raise SpecError where the command cannot be run, or has other placeholders than the study has values."""
        check_command(self._workload, study)

    def example(self, metric: str) -> str:
        """Return a line that a program may print."""
        return f'print lines such as {{"step": 5, "{metric}": 0.3}}'

    def reports(
        self, study: Study, point: Point, place: Path, worker: int, start: int, started: Started = untold
    ) -> Generator[Report | None]:
        """Yield what the program reports; when closed, it is told to end, and then made to."""
        values, output = told(study, point, place), place / OUTPUT
        source = Path(_filled(self._workload.metrics_file, values)) if self._workload.metrics_file else output
        if source != output and start == 0:
            _remove(source)  # what an earlier attempt at this trial left; it begins anew
        tail = Tail(source, start or _size(source))
        command = [_filled(part, values) for part in split_command(self._workload.command or "")]
        child = Child(command, output, trial_variables(study.engine, worker))
        started(child.group)
        try:
            while True:
                has_ended = child.wait(SECONDS) is not None  # looked at first, so that its last words are read
                for line, offset in tail.lines(is_last=has_ended):
                    if report := self._read(line, offset, study, point):
                        yield report
                if has_ended:
                    break
                yield None
        finally:
            child.end()
            started(0)
            self.remark = child.remark
        if child.exit_code:
            program = f"{name_of(study, point.trial_id)}: `{shown(shlex.join(command))}` {_ending(child.exit_code)}"
            raise TrialError(f"{program}; its last line: {shown(_last_line(output))}. All of it: {output}")

    def _read(self, line: str, offset: int, study: Study, point: Point) -> Report | None:
        patterns = compiled(self._workload.pattern or {})
        try:
            found = read_by_pattern(line, patterns) if patterns else read_json_line(line)
            return None if found is None else make_report(*found, offset)
        except TrainerError as error:
            raise TrainerError(f"{name_of(study, point.trial_id)}: in {shown(line, 100)}: {error}") from None


def check_command(workload: OwnLoop, study: Study) -> None:
    """Raise SpecError where a command cannot be run for a study."""
    parts, given = split_command(workload.command or ""), given_names(study)
    known = [*RESERVED, *given]
    used = _placeholders([*parts, workload.metrics_file or ""])
    for name in used:
        if name not in known:
            raise SpecError(f"workload.command: {unknown_name('placeholder', name, known)}")
    for name in ("batch_size", "seed", *given):
        if name not in used:
            raise SpecError(f"workload.command does not use {{{name}}}, which differs between trials: put it in.")
    own = set(_placeholders([workload.metrics_file or "{checkpoint}"]))
    if "checkpoint" not in own and not {"seed", "batch_size"} <= own:
        raise SpecError(
            f"workload.metrics_file = {shown(workload.metrics_file)} is the same file for several trials: put in "
            "{checkpoint}, the folder of a trial, or {batch_size} and {seed}."
        )
    if _placeholders(parts[:1]) or shutil.which(parts[0]) is None:
        raise SpecError(f"workload.command: there is no program {shown(parts[0])}.")
    if workload.pattern and not {"step", study.goal.metric} <= compiled(workload.pattern).keys():
        raise SpecError(f"workload.pattern: give one for step, and one for {study.goal.metric}.")


def split_command(command: str) -> list[str]:
    """Return the program and its arguments.

    >>> split_command("python train.py --name 'a b' --lr {learning_rate}")
    ['python', 'train.py', '--name', 'a b', '--lr', '{learning_rate}']
    """
    try:
        parts = shlex.split(command)
    except ValueError as error:
        raise SpecError(f"workload.command = {shown(command)}: {str(error).lower()}.") from None
    if not parts:
        raise SpecError("workload.command is empty: give a program and its arguments.")
    return parts


def compiled(pattern: Mapping[str, str]) -> Patterns:
    """Return regular expressions by name; SpecError where one is none, or has not just one group."""
    found = {}
    for name, text in pattern.items():
        try:
            found[name] = re.compile(text)
        except re.error as error:
            raise SpecError(f"workload.pattern.{shown(name)} = {shown(text)}: {error}.") from None
        if found[name].groups != 1:
            raise SpecError(
                f"workload.pattern.{shown(name)} = {shown(text)} has {found[name].groups} groups: put one around the "
                "number, as in 'loss ([0-9.]+)'."
            )
    return found


def _placeholders(parts: Iterable[str]) -> list[str]:
    return [name for part in parts for name in _PLACEHOLDER.findall(part)]


def _filled(part: str, values: Mapping[str, float | str]) -> str:
    return _PLACEHOLDER.sub(lambda match: _written(values[match[1]]), part)


def _written(value: float | str) -> str:
    """Return a value as an argument: a number in all its digits, a whole one without a point.

    >>> _written(0.1), _written(64.0), _written("a b")
    ('0.1', '64', 'a b')
    """
    return value if isinstance(value, str) else repr(value).removesuffix(".0")


def _ending(exit_code: int) -> str:
    """Return how a program has failed.

    >>> _ending(3), _ending(-11)
    ('ended with exit code 3', 'was ended by SIGSEGV')
    """
    if exit_code > 0:
        return f"ended with exit code {exit_code}"
    names = {number.value: number.name for number in signal.Signals}
    return f"was ended by {names.get(-exit_code, f'signal {-exit_code}')}"


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise TrialError(f"{path} is in the way of workload.metrics_file: {error.strerror}.") from None


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _last_line(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, _size(path) - 4096))
        lines = file.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "(nothing was printed)"
