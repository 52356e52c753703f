"""A callback for the Trainer of Hugging Face: is its first gradient that of all the examples that it has seen?"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor, nn

from batchlab.doctor.batch import Padding
from batchlab.doctor.bench import gradient_of
from batchlab.doctor.gradient import Gradient
from batchlab.doctor.live import check_observed
from batchlab.doctor.verdict import Equivalence


class EquivalenceCallback:
    """Compares the gradient of a Trainer's first update, before clipping, with that of all its microbatches as one.

    Add it to the trainer that it is given: `trainer.add_callback(EquivalenceCallback(trainer))`. The verdict is in
    `verdict` after the first update; where the gradients differ, it is a warning too.
    """

    def __init__(
        self,
        trainer: Any,
        *,
        padding: Padding | None = None,
        allow: Iterable[str] = (),
        tolerance: float | None = None,
    ) -> None:
        self.verdict: Equivalence | None = None
        """None before the first update."""

        self._trainer, self._padding, self._allow, self._tolerance = trainer, padding, list(allow), tolerance
        self._training_step = trainer.training_step
        self._seen: list[dict[str, Any]] = []
        self._gradient: Gradient | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **keywords: Any) -> None:
        """Begin to remember what the trainer trains on."""
        self._trainer.training_step = self._remembered  # no event tells of batches

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **keywords: Any) -> None:
        """Judge the first update, and leave the trainer alone from then on."""
        self._trainer.training_step = self._training_step
        if self.verdict is not None or self._gradient is None:
            return
        padding = _padding(self._seen, self._trainer) if self._padding is None else self._padding
        module = self._trainer.accelerator.unwrap_model(self._trainer.model_wrapped)
        self.verdict = check_observed(
            module, self._gradient, self._loss, self._seen, padding, self._allow, self._tolerance
        )
        self._seen, self._gradient = [], None
        if not self.verdict.is_equivalent:
            warnings.warn(f"Trainer: {self.verdict}", stacklevel=2)

    def __getattr__(self, event: str) -> Callable[..., None]:
        """Return what is done at any other event: nothing. A base class would need the package to be there."""
        if not event.startswith("on_"):
            raise AttributeError(f"EquivalenceCallback has no attribute {event!r}")
        return lambda *arguments, **keywords: None

    def _remembered(self, model: nn.Module, inputs: Any, *arguments: Any, **keywords: Any) -> Any:
        """Make a training step, and remember its batch and the gradient up to now, which is not clipped yet."""
        self._seen.append(dict(inputs))
        loss = self._training_step(model, inputs, *arguments, **keywords)
        scaler = getattr(self._trainer.accelerator, "scaler", None)
        scale = 1.0 if scaler is None else scaler.get_scale()
        found = gradient_of(self._trainer.accelerator.unwrap_model(model))
        self._gradient = found.with_values(found.values / scale)
        return loss

    def _loss(self, module: nn.Module, batch: Any) -> Tensor:
        """Return what the trainer calls the loss of a batch that is not cut.

        Workers call it together, each with the whole batch, so that what it sums over workers is in proportion.
        """
        trainer = self._trainer
        (whole,), number = trainer.get_batch_samples(iter([batch]), 1, trainer.args.device)
        with trainer.compute_loss_context_manager():
            loss: Tensor = trainer.compute_loss(module, dict(whole), num_items_in_batch=number)
        return loss


def _padding(batches: list[dict[str, Any]], trainer: Any) -> Padding:
    """Return what Hugging Face's collators fill each part with, of the parts that differ in length."""
    fills = {"input_ids": 0, "attention_mask": 0, "token_type_ids": 0, "position_ids": 0, "labels": -100}
    fills["input_ids"] = getattr(trainer.processing_class, "pad_token_id", None) or 0
    return {
        name: fill
        for name, fill in fills.items()
        if all(name in each for each in batches) and len({each[name].shape[1:] for each in batches}) > 1
    }
