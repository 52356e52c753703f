"""The trainer of networks: datasets in shared memory, PyTorch programs on one device."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from batchlab.core.study import Study
from batchlab.data.base import METRICS, Dataset, DatasetFacts, Examples, train_subset
from batchlab.engine.base import Point, UpTo, measured_pack_size
from batchlab.engine.checks.study import check_network
from batchlab.engine.device import find_device
from batchlab.engine.gang.share import OBSERVED_BY_ONE, Share
from batchlab.engine.observer import Observer, observed_metrics
from batchlab.engine.shared import MappedArray, SharedArray, share
from batchlab.errors import SpecError
from batchlab.models.registry import build_model, ghost_size, is_packable

if TYPE_CHECKING:
    import torch

    from batchlab.engine.gang.exchange import Exchange
    from batchlab.engine.program import TorchProgram
    from batchlab.engine.source import Split


class TorchTrainer:
    """Trains the models of a sweep on one dataset. Making one imports no torch: the workers do that."""

    def __init__(
        self,
        dataset: Dataset,
        device: str = "auto",
        precision: str = "float32",
        microbatch_size: int | Literal["auto"] = "auto",
        observers: Sequence[Observer] = (),
        exchange: Exchange | None = None,
    ) -> None:
        self._observers, self._exchange = tuple(observers), exchange
        self._device_name, self._precision, self._microbatch_size = device, precision, microbatch_size
        self._num_classes, self._task, self._image_view = dataset.num_classes, dataset.task, dataset.view
        self._facts = DatasetFacts(
            name=dataset.name,
            input_shape=dataset.input_shape,
            metrics=METRICS[dataset.task],
            source="",
            train_examples=len(dataset.train),
            num_classes=dataset.num_classes,
            task=dataset.task,
        )
        self._splits = {"train": _share(dataset.train), "val": _share(dataset.val), "test": _share(dataset.test)}
        # Training metrics are measured on as many examples as the validation set has.
        self._measured_rows = train_subset(len(dataset.train), min(len(dataset.train), len(dataset.val)))

    def check(self, study: Study) -> None:
        """Raise SpecError where the study names something unknown or asks for the impossible."""
        check_network(study, self._facts)

    def check_buildable(self, study: Study) -> None:
        """Raise SpecError where the network cannot be built for the examples that were read, or is too large."""
        from batchlab.engine.checks.buildable import check_buildable

        check_buildable(study, self._facts, self._device)

    def check_shared(self, study: Study, num_workers: int) -> None:
        """Raise SpecError where the batch cannot be shared by so many workers."""
        if self._observers:
            raise SpecError(OBSERVED_BY_ONE)
        Share(0, num_workers, ghost_size(study.workload.model)).check(study.batch_size, study.batch_size)

    def join(self, exchange: Exchange) -> None:
        """Train what is asked for from now on as one of several workers."""
        self._exchange = exchange

    def pack_size(self, study: Study) -> int | UpTo:
        """Return 1 for a model that trains one by one; else the most that may be worth a measurement."""
        return measured_pack_size(study) if is_packable(study.workload.model) else 1

    def metrics(self, study: Study) -> tuple[str, ...]:
        """Return `split/metric` for every evaluated split, and those of observers."""
        measured = [f"{split}/{metric}" for split in study.evaluation.splits for metric in self._facts.metrics]
        return observed_metrics(measured, self._observers)

    def program(
        self, study: Study, points: Sequence[Point], state: Mapping[str, np.ndarray] | None = None
    ) -> TorchProgram:
        """Return the program for these points, at step 0 or as `state` left it."""
        from batchlab.engine.gang.exchange import ALONE
        from batchlab.engine.objectives import OBJECTIVES
        from batchlab.engine.problem import Problem
        from batchlab.engine.program import TorchProgram

        problem = Problem(
            make_network=partial(build_model, study.workload.model, self._facts.input_shape, self._num_classes),
            objective=OBJECTIVES[self._task],
            num_classes=self._num_classes,
            train=self._tensors["train"],
            evaluated={str(split): self._evaluated(split) for split in study.evaluation.splits},
            device=self._device,
            image_view=self._image_view,
        )
        program = TorchProgram(
            problem,
            study,
            points,
            self._precision,
            self._microbatch_size,
            self._observers,
            self._exchange or ALONE,
        )
        if state is not None:
            program.restore(state)
        return program

    @property
    def device_name(self) -> str:
        """The device that programs run on, as PyTorch spells it."""
        return str(self._device)

    @cached_property
    def _device(self) -> torch.device:
        import torch

        torch.backends.cudnn.allow_tf32 = False  # of convolutions; elsewhere that is the default
        return find_device(self._device_name)

    @cached_property
    def _tensors(self) -> dict[str, Split]:
        from batchlab.engine.source import Split

        return {name: Split(*map(self._tensor, shared)) for name, shared in self._splits.items()}

    def _evaluated(self, split: str) -> Split:
        tensors = self._tensors[split]
        return tensors.take(self._measured_rows) if split == "train" else tensors

    def _tensor(self, shared: SharedArray | MappedArray) -> torch.Tensor:
        """Return an array as a tensor; what is memory-mapped stays where it is."""
        import torch

        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The given NumPy array is not writable")  # and nobody writes to it
            tensor = torch.from_numpy(shared.array())
        return tensor if isinstance(shared, MappedArray) else tensor.to(self._device)

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_device", "_tensors")}


def _share(examples: Examples) -> tuple[SharedArray | MappedArray, SharedArray | MappedArray]:
    inputs = share(examples.inputs)
    return inputs, inputs if examples.labels is examples.inputs else share(examples.labels)
