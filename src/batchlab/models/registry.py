"""Models by name, named as in the published data. Checking a name imports no training framework."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from batchlab.core.workload import Named
from batchlab.errors import SpecError, unknown_name

if TYPE_CHECKING:
    from batchlab.models.base import Model

SIMPLE_CNN_SIZES = {  # name: (filters of the two convolutions, hidden units)
    "simple_cnn_narrow": ((16, 32), 512),
    "simple_cnn_base": ((32, 64), 1024),
    "simple_cnn_wide": ((64, 128), 2048),
}
_FULLY_CONNECTED = re.compile(r"fc(_[1-9][0-9]{0,5})+")
_KNOWN = ["softmax_regression", "fc_128", "fc_1024_1024 (any widths)", *SIMPLE_CNN_SIZES]


def check_model(model: Named) -> None:
    """Raise SpecError unless `model` is known and its options make sense."""
    options = {"dropout"} if model.name in SIMPLE_CNN_SIZES else set()
    for option in model.options:
        if option not in options:
            raise SpecError(unknown_name(f"option of model {model.name}", option, options or {"(none)"}))
    dropout = model.options.get("dropout", 0.0)
    if not (isinstance(dropout, int | float) and 0 <= dropout < 1):
        raise SpecError(f"dropout = {dropout} of model {model.name} must be at least 0 and below 1.")
    if model.name not in ("softmax_regression", *SIMPLE_CNN_SIZES) and not _FULLY_CONNECTED.fullmatch(model.name):
        raise SpecError(unknown_name("model", model.name, _KNOWN))


def build_model(model: Named, input_shape: Sequence[int], num_classes: int) -> Model:
    """Return the model for inputs of one example's shape."""
    check_model(model)
    if model.name in SIMPLE_CNN_SIZES:
        from batchlab.models.simple_cnn import SimpleCnn

        filters, hidden = SIMPLE_CNN_SIZES[model.name]
        return SimpleCnn(filters, hidden, input_shape, num_classes, **model.options)
    from batchlab.models.fully_connected import FullyConnected

    widths = [int(width) for width in model.name.split("_")[1:]] if model.name.startswith("fc_") else []
    return FullyConnected(widths, input_shape, num_classes)
