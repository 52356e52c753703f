"""The trainer of networks: datasets in shared memory, PyTorch programs on one device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from batchlab.core.study import Study
from batchlab.data.base import Dataset, Examples
from batchlab.engine.base import Point
from batchlab.engine.shared import SharedArray
from batchlab.errors import SpecError
from batchlab.models.registry import build_model

if TYPE_CHECKING:
    import torch

    from batchlab.engine.program import Split, TorchProgram

METRICS = ("cross_entropy_error", "classification_error")


class TorchTrainer:
    """Trains the models of a sweep on one dataset. Making one imports no torch: the workers do that."""

    def __init__(self, dataset: Dataset, device: str = "auto", precision: str = "float32") -> None:
        self._device_name, self._precision = device, precision
        self._num_classes = dataset.num_classes
        # Training metrics are measured on as many examples as the validation set has.
        train_part = Examples(
            dataset.train.inputs[: len(dataset.val.labels)], dataset.train.labels[: len(dataset.val.labels)]
        )
        self._train = _share(dataset.train)
        self._splits = {"train": _share(train_part), "val": _share(dataset.val), "test": _share(dataset.test)}

    def metrics(self, study: Study) -> tuple[str, ...]:
        """Return `split/metric` for every evaluated split."""
        return tuple(f"{split}/{metric}" for split in study.evaluation.splits for metric in METRICS)

    def program(
        self, study: Study, points: Sequence[Point], state: Mapping[str, np.ndarray] | None = None
    ) -> TorchProgram:
        """Return the program for these points, at step 0 or as `state` left it."""
        from batchlab.engine.program import TorchProgram

        train = self._tensors["all"]
        model = build_model(study.workload.model, train[0].shape[1:], self._num_classes)
        evaluated = {str(split): self._tensors[split] for split in study.evaluation.splits}
        program = TorchProgram(model, study, points, train, evaluated, self._precision)
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

        if self._device_name == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        try:
            device = torch.device(self._device_name)
            torch.empty(0, device=device)
        except (RuntimeError, AssertionError) as error:
            reason = str(error).splitlines()[0]
            raise SpecError(f'engine.device = "{self._device_name}" cannot be used: {reason} Use "auto".') from None
        return device

    @cached_property
    def _tensors(self) -> dict[str, Split]:
        import torch

        shared = {"all": self._train, **self._splits}
        return {
            name: (torch.from_numpy(inputs.array()).to(self._device), torch.from_numpy(labels.array()).to(self._device))
            for name, (inputs, labels) in shared.items()
        }

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_device", "_tensors")}


def _share(examples: Examples) -> tuple[SharedArray, SharedArray]:
    return SharedArray(examples.inputs), SharedArray(examples.labels)
