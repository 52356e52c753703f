"""A run whose processes torchrun has started, on one machine or several: they are one gang.

The first process is the run: it holds the lab, shows progress and leads. The others serve it: they follow its orders,
see `engine.gang.leading`, write nothing, and end with its exit code. Whoever is on another machine has its own copy of
the data, and of the user's code.
"""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from batchlab.core.sweep import Engine, Sweep
from batchlab.engine.base import Trainer, check_shared
from batchlab.engine.gang.leading import LeadingTrainer, Order, follow
from batchlab.errors import BatchlabError, InputError, Interrupted, LostOthersError
from batchlab.loops.resources import DEVICES, visible_gpus
from batchlab.processes import Place, torchrun_place
from batchlab.run.executors.gpus import CHOOSES
from batchlab.run.executors.here import HereExecutor
from batchlab.run.executors.work import as_told

if TYPE_CHECKING:
    from batchlab.engine.gang.group import Assembly


@dataclass(frozen=True)
class _Begin:
    """The run has something to train: make your trainers."""


@dataclass(frozen=True)
class _End:
    """The run is over."""

    exit_code: int


class TorchrunGang:
    """All processes of torchrun, seen from one of them."""

    def __init__(self, place: Place, engine: Engine) -> None:
        self._place = place
        self._leader: LeadingTrainer | None = None
        self._has_ended = False  # by a word that all have heard
        if engine.device in CHOOSES and (gpus := visible_gpus()):
            os.environ[DEVICES] = gpus[place.local_rank % len(gpus)]
        self._assembly = _assemble(engine.device, engine.worker_timeout_seconds)

    @property
    def serves(self) -> bool:
        """Whether this process follows another."""
        return self._place.rank > 0

    def spread(self, sweep: Sweep) -> Sweep:
        """Return a sweep whose trials train on all processes; InputError where its spec asks for another number."""
        wanted, size = sweep.engine.workers_per_trial, self._place.size
        if wanted not in (1, size):
            raise InputError(
                f"engine.workers_per_trial = {wanted}, and torchrun has started {size} processes, which train each "
                f"trial together: start {wanted}, or leave it out."
            )
        engine = sweep.engine.model_copy(update={"workers_per_trial": size})
        spread = sweep.model_copy(update={"engine": engine})
        Sweep.parse(spread.plain(), "torchrun")  # which refuses what several workers cannot train
        return spread

    def start(self, sweep: Sweep, trainer: Trainer) -> Callable[[list[int]], HereExecutor]:
        """Return what starts the executor, this process, once all are known to be able to share each batch."""
        for study in sweep.studies():
            check_shared(trainer, study, self._place.size)

        def start(batch_sizes: list[int]) -> HereExecutor:
            self._assembly.tell(_Begin())
            self._take_turns()
            self._leader = LeadingTrainer(self._joined(trainer), self._assembly.tell)
            return HereExecutor(self._leader, batch_sizes)

        return start

    def serve(self, make_trainer: Callable[[], Trainer]) -> NoReturn:
        """Follow the first process to its end; SystemExit with its exit code, or an error of this one's own."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # the first hears of it, and tells
            signal.signal(number, signal.SIG_IGN)
        warnings.simplefilter("ignore")
        try:
            if isinstance(order := self._assembly.hear(), _Begin):
                trainer = self._joined(self._take_turns(make_trainer))
                order = self._follow(trainer)
            self._has_ended = True
            if order.exit_code:
                self._wait_for_the_last_word()
        except LostOthersError:
            raise SystemExit(1) from None
        except Exception as error:
            raise BatchlabError(f"Rank {self._place.rank} of {self._place.size}: {as_told(error)}") from error
        raise SystemExit(order.exit_code)

    def _wait_for_the_last_word(self) -> None:
        """Return once the first process has ended: torchrun ends all as soon as one has failed, in mid-sentence."""
        with suppress(LostOthersError):
            self._assembly.hear()

    def _follow(self, trainer: Trainer) -> Any:
        """Do what the first process orders; return its last word."""
        problems: list[Exception] = []
        end: Any = None

        def orders() -> Iterator[Order]:
            nonlocal end
            while not isinstance(end := self._assembly.hear(), _End):
                yield end

        try:
            follow(trainer, orders(), problems.append)
        except LostOthersError:
            if problems:  # of which the first process knows nothing
                raise problems[-1] from None
            raise
        return end

    def _take_turns(self, make_trainer: Callable[[], Trainer] | None = None) -> Any:
        """Let one process of each machine make its trainer first, which may fetch data, and then the others."""
        trainer = None
        for is_turn in (self._place.local_rank == 0, self._place.local_rank > 0):
            if is_turn and make_trainer is not None:
                trainer = make_trainer()
            self._assembly.wait_for_all()
        return trainer

    def _joined(self, trainer: Any) -> Trainer:
        trainer.join(self._assembly.exchange)
        joined: Trainer = trainer
        return joined

    def end(self, exit_code: int) -> None:
        """Let the others end with an exit code; where they are out of step they notice by themselves."""
        if not self.serves and (self._leader is None or self._leader.is_in_step):
            with suppress(LostOthersError):
                self._assembly.tell(_End(exit_code))
                self._has_ended = True
        self._assembly.close(is_in_step=self._has_ended)

    def named(self, error: LostOthersError) -> LostOthersError:
        """Return an error with the names of those who are silent."""
        try:
            silent = self._assembly.silent()
        except (RuntimeError, KeyboardInterrupt):  # whoever knows them has ended, or torchrun is in a hurry
            silent = []
        return LostOthersError(f"{error}. No sign of life: {', '.join(silent)}") if silent else error


def _assemble(device: str, seconds: float) -> Assembly:
    from batchlab.engine.device import count_gpus
    from batchlab.engine.gang.group import Assembly

    return Assembly("cuda" if device == "auto" and count_gpus() else device, seconds)


@contextmanager
def assembled(engine: Engine) -> Iterator[TorchrunGang | None]:
    """Yield the processes of torchrun, which stay together for as long as the run takes; None where there are none."""
    place = torchrun_place()
    if place is None:
        yield None
        return
    gang, exit_code = TorchrunGang(place, engine), BatchlabError.exit_code
    try:
        yield gang
        exit_code = 0
    except LostOthersError as error:
        raise gang.named(error) from error
    except BatchlabError as error:
        exit_code = error.exit_code
        raise
    except KeyboardInterrupt:
        exit_code = Interrupted.exit_code
        raise
    finally:
        gang.end(exit_code)


def check_left_to_torchrun(num_workers: int | None, num_gpus: int | None, executor: str) -> None:
    """Raise InputError where something is asked for that torchrun decides."""
    asked = {"workers": num_workers is not None, "gpus": num_gpus is not None, "executor": executor != "local"}
    for name, is_asked in asked.items():
        if is_asked:
            raise InputError(f"Leave out `{name}`: torchrun decides how many processes there are, and where.")
