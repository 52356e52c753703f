"""Clean or failed: what every command may answer of a lab of which something is not as it was written.

An answer is that of the sound lab, or the command ends with exit code 1 or 2, names what is damaged in one line, and
answers the rest. No reader changes anything. `batchlab verify` finds it; `--repair` and `run` make the lab whole again,
and nothing that was there is lost.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from batchlab.errors import BatchlabError
from batchlab.store.lab import Lab
from batchlab.store.query import connect
from tests.torture.asking import Answer, ask, ask_outside
from tests.torture.content import content
from tests.torture.snapshot import differences, snapshot
from tests.torture.stock import Sample

MOST_LINE = 2_000
"""Characters of one line on stderr."""

DERIVED = ("lock", "rejected.json")
"""Files that carry nothing that is answered: `verify` may pass over them."""


@dataclass(frozen=True)
class Damage:
    """What was done to a lab."""

    what: str
    touched: tuple[str, ...]
    """The paths in the lab that are not as they were."""

    is_edit: bool = False
    """A file that can still be read, as after an edit."""

    is_same: bool = False
    """Nothing that is answered can have changed: in a checkpoint, which proves its arrays, none of those."""

    is_gone: bool = False
    """A whole study or sweep is no longer in its place, or a record without which nobody knows that it ever was."""

    is_stale: bool = False
    """An older version of the same is there."""

    is_added: bool = False

    @property
    def carries_nothing(self) -> bool:
        """Whether nobody can be asked to notice."""
        return self.is_same or all(Path(name).name in DERIVED for name in self.touched)

    def touches(self, sweep: str, batch_size: int | None = None) -> bool:
        """Return whether a sweep, or one study of it, is concerned."""
        return any(_concerns(Path(name).parts, sweep, batch_size) for name in self.touched)


def _concerns(parts: tuple[str, ...], sweep: str, batch_size: int | None) -> bool:
    if parts[0] != "sweeps" or len(parts) == 1:
        return True
    if parts[1] != sweep:
        return False
    rest = [part for part in parts[2:] if part not in ("growing", "replaced")]
    return batch_size is None or not rest or not rest[0].isdecimal() or rest[0] == str(batch_size)


Ask = Callable[..., Answer]


def judge(sample: Sample, lab: Path, damage: Damage, dice: random.Random) -> list[str]:
    """Return what is wrong with how batchlab takes a damaged copy of a lab, a sentence each."""
    return list(_Judge(sample, lab, damage).problems(dice))


class _Judge:
    def __init__(self, sample: Sample, lab: Path, damage: Damage) -> None:
        self._sample, self._lab, self._damage = sample, lab, damage
        self._before = snapshot(lab.parent)

    @property
    def _has_seals(self) -> bool:
        """Whether edits can be noticed: labs of older formats have nothing to compare with."""
        return self._sample.name not in ("format-1", "format-2")

    @property
    def _must_be_equal(self) -> bool:
        """Whether an answer without an error can only be that of the sound lab."""
        return self._has_seals and not self._damage.is_gone and not self._damage.is_stale

    def problems(self, dice: random.Random) -> Iterator[str]:
        """Ask the readers, the costly ones now and then, and at last those that write."""
        yield from self._cheap_readers(ask)
        if dice.random() < 0.02:
            yield from self._cheap_readers(ask_outside)
        for share, reader in ((0.10, self._export), (0.05, self._report), (0.05, self._figure)):
            if dice.random() < share:
                yield from reader()
        yield from (f"a reader changed the lab: {line}" for line in self._changes())
        writers = [self._repair, self._repair, self._run, self._merge, self._accept, self._confirm]
        if dice.random() < 0.15:
            yield from dice.choice(writers)()
            yield from (f"written outside the lab: {line}" for line in self._changes() if not line.startswith("lab/"))

    def _changes(self) -> list[str]:
        return differences(self._before, snapshot(self._lab.parent))

    def _cheap_readers(self, ask: Ask) -> Iterator[str]:
        for sweep in self._sample.sweeps:
            yield from self._curve(sweep, ask)
        yield from self._status(ask)
        yield from self._verify(ask)
        if ask is not ask_outside:
            yield from self._results()
            yield from self._queries()

    def _plain(self, answer: Answer) -> Answer:
        return _plain(answer, self._lab)

    def _curve(self, sweep: str, ask: Ask) -> Iterator[str]:
        got = self._plain(ask("curve", "--lab", self._lab, "--sweep", sweep, "--json"))
        sound = _sound_curve(self._sample, sweep)
        yield from self._compare(f"curve of {sweep}", sound, got, self._damage.touches(sweep))
        if got != sound and self._has_seals:
            yield from self._rows(sweep, got, sound)

    def _rows(self, sweep: str, got: Answer, sound: Answer) -> Iterator[str]:
        """Every row that is told must be true, and the rows of studies that are sound be told."""
        true = {row["batch_size"]: row for row in _rows(sound)}
        told = {row["batch_size"]: row for row in _rows(got)}
        old = {row["batch_size"]: row for row in _rows(_older_curve(self._sample, sweep))}
        for size, row in told.items():
            if row != true.get(size) and not (self._damage.is_stale and row == old.get(size)):
                yield f"curve of {sweep} tells a wrong row: {row} instead of {true.get(size)}"
        for size in true.keys() - told.keys():
            if not self._damage.touches(sweep, size):
                yield f"curve of {sweep} leaves out batch size {size}, which is sound: {got.err}"

    def _status(self, ask: Ask) -> Iterator[str]:
        got, sound = self._plain(ask("status", "--lab", self._lab, "--json")), _sound_status(self._sample)
        yield from self._compare("status", sound, got, True)
        if got != sound and got.out:
            true = {each["sweep"]: each for each in json.loads(sound.out)}
            told = {each["sweep"]: each for each in json.loads(got.out)}
            for name in true:
                if told.get(name) != true[name] and not self._damage.touches(name):
                    yield f"status tells of sweep {name}, which is sound: {told.get(name)} instead of {true[name]}"

    def _verify(self, ask: Ask) -> Iterator[str]:
        got = self._plain(ask("verify", "--lab", self._lab, "--json"))
        yield from self._form("verify", got)
        if got.code == 0 and not self._damage.carries_nothing and self._has_seals and not self._is_foreign(got):
            yield "verify finds nothing"
        if got.code == 1 and not any(self._names(line) for line in _problems(got)):
            yield f"verify does not name it: {_problems(got)}"
        if got.code == 1 and self._damage.is_added:
            yield f"verify takes a file of the user's own for damage: {_problems(got)}"

    def _is_foreign(self, got: Answer) -> bool:
        """Return whether `verify` lists something that was touched as none of batchlab's."""
        foreign = json.loads(got.out)["foreign"]
        return any(f"LAB/{name}" in foreign for name in self._damage.touched)

    def _results(self) -> Iterator[str]:
        """Ask from Python: the studies that come back must be those that were stored."""
        try:
            told, problems = _results(self._lab)
        except BatchlabError as error:
            told, problems = {}, [str(error)]
        except Exception as error:
            yield f"Lab.results raises {error!r}"
            return
        true = _sound_results(self._sample)
        for place, digest in told.items() if self._has_seals else ():
            if digest != true.get(place) and not self._damage.is_stale:
                yield f"Lab.results gives another study {place}"
        if told != true and not problems and not self._damage.is_gone and self._has_seals and not self._damage.is_stale:
            yield "Lab.results leaves something out and does not say why"

    def _queries(self) -> Iterator[str]:
        """Ask in SQL: the rows are those of the sound lab, or an error names what is damaged."""
        try:
            told = _queried(self._lab)
        except BatchlabError as error:
            if not self._names(str(error).replace(str(self._lab), "LAB")):
                yield f"connect does not name what is damaged: {error}"
            return
        except Exception as error:
            yield f"connect raises {error!r}"
            return
        if told != _sound_query(self._sample) and self._must_be_equal:
            yield "connect gives other rows without a word"

    def _compare(self, name: str, sound: Answer, got: Answer, is_concerned: bool) -> Iterator[str]:
        """An answer is the sound one, or an error that names what is damaged."""
        yield from self._form(name, got)
        if got == sound or got.code is None:
            return
        if not is_concerned:
            yield f"{name} is not concerned and answers otherwise: {got.code} {got.err}"
        elif got.code == sound.code == 0 and self._has_seals and not self._tells_what_is_missing(got, sound):
            yield f"{name} answers otherwise without a word: {got.out[:300]} {got.err}"
        elif got.code != 0 and not self._says_why(got):
            yield f"{name} does not name what is damaged: {got.err}"

    def _says_why(self, got: Answer) -> bool:
        is_told = any(self._names(line) for line in got.lines)
        is_none_left = "no study to summarise" in got.err or "finished yet" in got.err
        return is_told or (self._damage.is_gone and is_none_left)

    def _tells_what_is_missing(self, got: Answer, sound: Answer) -> bool:
        """Return whether what is gone is told as not finished: a study that is not there at all may never have been."""
        is_told = "not finished yet" in got.err or '"studies"' in got.out
        return (self._damage.is_gone and is_told) or self._damage.is_stale

    def _form(self, name: str, got: Answer) -> Iterator[str]:
        if got.code is None:
            yield f"{name}: {'no answer' if 'no answer' in got.err else 'traceback'}: {got.err[-1500:]}"
        elif got.code not in (0, 1, 2):
            yield f"{name} ends with exit code {got.code}: {got.err}"
        for line in got.lines if got.code is not None else ():
            if not line.startswith("batchlab: ") or not line.isprintable() or len(line) > MOST_LINE:
                yield f"{name} says what is no single line of its own: {line[:300]!r}"

    def _names(self, line: str) -> bool:
        """Return whether a sentence names something that was touched, or the study or sweep that holds it."""
        for name in self._damage.touched:
            parts = Path(name).parts
            study = Path(*parts[: 4 if {"growing", "replaced"} & set(parts) else 3])
            sweep = f"LAB/{Path(*parts[:2])} holds"
            if any(f"LAB/{each}" in line for each in (name, study)) or sweep in line:
                return True
        return False

    def _export(self) -> Iterator[str]:
        out = self._lab.parent / "exported"
        got = self._plain(ask("export", out, "--lab", self._lab))
        yield from self._form("export", got)
        if got.code == 0 and self._must_be_equal:
            true, told = _sound_export(self._sample), snapshot(out)
            if _told(true) != _told(told):
                yield f"export writes something else: {differences(true, told)[:3]}"
        shutil.rmtree(out, ignore_errors=True)

    def _report(self) -> Iterator[str]:
        page = self._lab.parent / "page.html"
        got = self._plain(ask("report", "--lab", self._lab, "--out", page))
        yield from self._form("report", got)
        if got.code == 0 and self._must_be_equal and _text_of(page) != _sound_report(self._sample):
            yield "report writes another page without a word"
        elif got.code not in (0, None) and not any(self._names(line) for line in got.lines):
            yield f"report does not name what is damaged: {got.err}"
        page.unlink(missing_ok=True)

    def _figure(self) -> Iterator[str]:
        out, sweep = self._lab.parent / "drawn", next(iter(self._sample.sweeps))
        got = self._plain(ask("figure", "steps-to-result", "--lab", self._lab, "--sweep", sweep, "--out", out))
        yield from self._form("figure", got)
        if got.code == 0 and self._must_be_equal and _csv(out) != _sound_figure(self._sample):
            yield "figure draws something else without a word"
        shutil.rmtree(out, ignore_errors=True)

    def _run(self) -> Iterator[str]:
        """Run again without a repair: it is refused, or the lab is as it should be."""
        yield from self._kept_after(lambda: self._complete("run"))

    def _complete(self, name: str) -> Iterator[str]:
        problems = self._sample.complete(self._lab)
        for problem in problems:
            if "Traceback" in problem:
                yield f"{name}: traceback: {problem[-1500:]}"
        if not problems:
            yield from self._is_complete(name)

    def _is_complete(self, name: str) -> Iterator[str]:
        """The lab must hold what it would have held without damage, bit for bit."""
        if not self._has_seals:
            return
        try:
            found = content(self._lab, list(self._sample.sweeps))
        except BatchlabError as error:
            if name != "run" or not self._names(str(error).replace(str(self._lab), "LAB")):
                yield f"{name} leaves a lab that cannot be read: {error}"
            return
        wanted = self._sample.completed
        for place in sorted(wanted.keys() - {"files"}):
            if found.get(place) != wanted[place] and not self._may_differ(place):
                yield f"{name} leaves another study {place}: {found.get(place)} instead of {wanted[place]}"
        yield from self._same_files(name, wanted["files"].split("\0"), found["files"].split("\0"))

    def _may_differ(self, place: str) -> bool:
        """Return whether a study cannot be the same again: without its trials aside, or trained by another machine."""
        sweep, _, size = place.partition(" ")[0].rpartition("/")
        is_hit = self._damage.touches(sweep, int(size))
        return is_hit and (self._sample.name.startswith("format-") or place.endswith(" aside"))

    def _same_files(self, name: str, wanted: list[str], found: list[str]) -> Iterator[str]:
        own = tuple(name for name in self._damage.touched if name not in wanted)
        moved = {Path(each).name for each in own if self._damage.is_added}  # with a study that took another's place
        extra = [each for each in found if each not in wanted and not each.startswith(own)]
        extra = [each for each in extra if Path(each).name not in moved]
        missing = [each for each in wanted if each not in found and not self._may_lack(each)]
        if extra or missing:
            yield f"{name} leaves other files: {extra} too many, {missing} too few"

    def _may_lack(self, name: str) -> bool:
        """Return whether a file is of trials that do not count, and that nobody trains again."""
        is_state = "states" in Path(name).parts
        study = Path(name).parents[1 if is_state else 0]
        is_hit = any(study in (Path(each), *Path(each).parents) for each in self._damage.touched)
        return is_hit and (is_state or name.endswith("aside.parquet"))

    def _kept_after(self, act: Callable[[], Iterator[str]]) -> Iterator[str]:
        """Whatever an act does, what was there is in the lab still, set aside, or replaced by a larger study."""
        before = snapshot(self._lab)
        yield from act()
        held = {what: name for name, what in snapshot(self._lab).items()}
        for name, what in before.items():
            study = Path(name).parent
            is_replaced = str(study.parent / "growing" / study.name / "study.json") in before
            if what != "folder" and what not in held and not is_replaced and not self._may_go(name):
                yield f"{name} is lost"

    def _may_go(self, name: str) -> bool:
        """Return whether a file may be written anew or end with what it was for: it is sound, and only of a moment."""
        if name in self._damage.touched and not self._damage.is_stale and self._has_seals:
            return Path(name).name in DERIVED or name.endswith(".tmp") or self._damage.is_same
        is_passing = {"parts", "checkpoints", "confirming", "growing", "replaced"} & set(Path(name).parts)
        is_old = not self._has_seals  # brought to the format of today
        return bool(is_passing) or is_old or Path(name).name in ("study.json", "sweep.json", "lab.json", *DERIVED)

    def _repair(self) -> Iterator[str]:
        """Repair, then complete: the lab is whole again, nothing is lost, and a second look finds nothing."""
        if "written by a newer" in ask("status", "--lab", self._lab).err:
            return
        yield from self._kept_after(self._repair_only)
        if not self._has_seals:
            return
        yield from self._complete("run after repair")
        again = self._sample.complete(self._lab)
        if again:
            yield f"after a repair {again}"
        look = ask("verify", "--lab", self._lab, "--json")
        if look.code != 0:
            yield f"verify is not clean after repair and run: {look.out[-800:]} {look.err}"

    def _repair_only(self) -> Iterator[str]:
        got = self._plain(ask("verify", "--repair", "--lab", self._lab, "--json"))
        yield from self._form("verify --repair", got)
        if got.code == 1 and not all("is missing" in each for each in _problems(got)) and not self._needs_spec():
            yield f"verify --repair does not repair: {_problems(got)}"
        if got.code not in (0, 1, None):
            yield f"verify --repair ends with {got.code}: {got.err}"
        yield from self._keeps_what_is_sound()

    def _needs_spec(self) -> bool:
        return any(Path(name).name in ("sweep.json", "import.json") for name in self._damage.touched)

    def _keeps_what_is_sound(self) -> Iterator[str]:
        """A repair keeps every study but that whose curves are gone; how long trials took may be lost with a file."""
        if not self._must_be_equal or self._needs_spec():
            return
        told, _ = _results(self._lab, with_times=False)
        for place, digest in _sound_results(self._sample, with_times=False).items():
            sweep, _, size = place.rpartition("/")
            is_hit = self._damage.touches(sweep, int(size)) and any(
                name.endswith(("measurements.parquet", "confirmed.parquet", f"/{size}"))
                for name in self._damage.touched
            )
            if told.get(place) != digest and not is_hit:
                yield f"verify --repair gives up {place}, whose curves are sound"

    def _merge(self) -> Iterator[str]:
        into = self._lab.parent / "merged"
        got = self._plain(ask("merge", self._lab, "--into", into))
        yield from self._form("merge", got)
        if got.code == 0 and self._must_be_equal:
            told, problems = _results(into)
            true = _sound_results(self._sample)
            if problems or any(digest != true.get(place) for place, digest in told.items()):
                yield f"merge takes in what is not sound: {problems}"
        shutil.rmtree(into, ignore_errors=True)

    def _confirm(self) -> Iterator[str]:
        """Confirm what can be: nothing that was there is lost, and no study but its confirmation becomes another."""
        yield from self._kept_after(self._confirm_only)

    def _confirm_only(self) -> Iterator[str]:
        got = self._plain(ask("confirm", "--lab", self._lab, "--workers", 1, "--seeds", 2, "--points", 1))
        yield from self._form("confirm", got)
        if got.code == 0 and self._must_be_equal:
            told, true = _queried(self._lab), _sound_query(self._sample)
            if told != true:
                yield "confirm leaves other trials or curves"

    def _accept(self) -> Iterator[str]:
        """A user's own edit that is accepted counts; one that cannot be is refused in one line."""
        name = self._damage.touched[0]
        got = self._plain(ask("verify", "--accept", self._lab / name, "--lab", self._lab, "--json"))
        yield from self._form("verify --accept", got)
        if got.code != 0 or not self._damage.is_edit or not self._has_seals or self._damage.carries_nothing:
            return
        for sweep in self._sample.sweeps:
            answer = ask("curve", "--lab", self._lab, "--sweep", sweep, "--json")
            if answer.code != _sound_curve(self._sample, sweep).code:
                yield f"curve of {sweep} fails after an edit was accepted: {answer.err}"
        if Path(name).name == "trials.json" and "encode_again" not in self._damage.what:
            told, _ = _results(self._lab)
            if told == _sound_results(self._sample):
                yield "an edit of trials.json was accepted and does not count"


def _plain(answer: Answer, lab: Path) -> Answer:
    """Return an answer with the lab's place left out, so that two labs can be compared."""
    return Answer(answer.code, answer.out.replace(str(lab), "LAB"), answer.err.replace(str(lab), "LAB"))


def _rows(answer: Answer) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(answer.out)["rows"] if answer.out else []
    return rows


def _problems(answer: Answer) -> list[str]:
    if not answer.out:
        return answer.lines
    return [f"{each['path']}: {each['problem']}" for each in json.loads(answer.out)["findings"]]


def _told(export: dict[str, str]) -> dict[str, str]:
    """Return an export without its digests, which differ from day to day."""
    return {name: what for name, what in export.items() if not name.endswith("study.json") and "/" in name}


def _results(lab: Path, with_times: bool = True) -> tuple[dict[str, str], list[str]]:
    """Return a digest of every finished study that Python gets, and what it is told of the others."""
    store, told, problems = Lab.open(lab), dict[str, str](), list[str]()
    sweeps, errors = store.readable_sweeps()
    problems += map(str, errors)
    for sweep in sweeps:
        results = store.results(sweep)
        problems += map(str, results.problems)
        for result in results.results:
            trials, confirmed = result.trials, result.confirmation
            if not with_times:
                trials = [trial.without_times() for trial in trials]
                confirmed = None if confirmed is None else confirmed.without_times()
            rows = result.measurements
            curves = [rows.trial_id.tobytes(), rows.step.tobytes(), *(v.tobytes() for v in rows.metrics.values())]
            told[f"{sweep.name}/{result.batch_size}"] = repr(
                (hash(repr(trials)), hash(tuple(curves)), repr(confirmed), result.end_step)
            )
    return told, problems


def _queried(lab: Path) -> list[Any]:
    """Return how many rows and trials SQL finds in each study, with a digest of them."""
    question = "select sweep, batch_size, count(*), bit_xor(hash(told)) from {} told group by 1, 2 order by 1, 2"
    with connect(lab) as connection:
        return [connection.execute(question.format(view)).fetchall() for view in ("measurements", "trials")]


def _text_of(page: Path) -> str:
    return page.read_text() if page.exists() else ""


def _csv(folder: Path) -> list[str]:
    return [path.read_text() for path in sorted(folder.glob("*.csv"))]


@cache
def _sound_curve(sample: Sample, sweep: str) -> Answer:
    return _plain(ask("curve", "--lab", sample.lab, "--sweep", sweep, "--json"), sample.lab)


@cache
def _older_curve(sample: Sample, sweep: str) -> Answer:
    return ask("curve", "--lab", sample.before, "--sweep", sweep, "--json")


@cache
def _sound_status(sample: Sample) -> Answer:
    return _plain(ask("status", "--lab", sample.lab, "--json"), sample.lab)


@cache
def _sound_results(sample: Sample, with_times: bool = True) -> dict[str, str]:
    return _results(sample.lab, with_times)[0]


@cache
def _sound_query(sample: Sample) -> list[Any]:
    return _queried(sample.lab)


@cache
def _sound_export(sample: Sample) -> dict[str, str]:
    out = sample.folder / "exported"
    shutil.rmtree(out, ignore_errors=True)
    ask("export", out, "--lab", sample.lab)
    found = snapshot(out) if out.exists() else {}
    shutil.rmtree(out, ignore_errors=True)
    return found


@cache
def _sound_report(sample: Sample) -> str:
    page = sample.folder / "page.html"
    ask("report", "--lab", sample.lab, "--out", page)
    return _text_of(page)


@cache
def _sound_figure(sample: Sample) -> list[str]:
    out, sweep = sample.folder / "drawn", next(iter(sample.sweeps))
    ask("figure", "steps-to-result", "--lab", sample.lab, "--sweep", sweep, "--out", out)
    return _csv(out)
