"""A module of the user's own on a share of a microbatch, as if it had the whole of it.

Two things let an example's outputs depend on the examples beside it: batch normalisation, whose statistics are those of
all workers here, and chance. What dropout draws is drawn for the whole microbatch by every worker, from the same seed,
and cut. Whatever else a module draws is announced: nobody can know which part of it belongs to which example.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from batchlab.engine.gang.exchange import Exchange
from batchlab.engine.source import cut_places

DROPPING = {
    *(F.dropout, F.dropout1d, F.dropout2d, F.dropout3d, F.alpha_dropout, F.feature_alpha_dropout),
    *(torch.dropout, torch.feature_dropout, torch.alpha_dropout, torch.feature_alpha_dropout),
}
"""Functions that decide by chance about each example for itself; the first axis of their input is the batch."""

DRAWING = {
    *("rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like", "normal", "normal_"),
    *("bernoulli", "bernoulli_", "uniform_", "random_", "exponential_", "geometric_", "cauchy_", "log_normal_"),
    *("multinomial", "poisson", "binomial", "gumbel_softmax", "rrelu_", "dropout_", "alpha_dropout_"),
    "native_dropout",
    *("feature_dropout_", "feature_alpha_dropout_"),
}
"""Names of functions that draw in a way of their own."""

RECURRENT = frozenset(("lstm", "gru", "rnn_tanh", "rnn_relu"))
"""Functions whose numbers are: has a bias, layers, share of units that are dropped, trains, and how batches lie."""


class WholeBatch(TorchFunctionMode):
    """Stands between a module and PyTorch while a share of a microbatch is computed, there and back."""

    def __init__(self, exchange: Exchange, microbatch_size: int) -> None:
        super().__init__()
        self._exchange, self._microbatch_size = exchange, microbatch_size
        self._part, self._whole = slice(0, 0), slice(0, 0)
        self._announced: set[str] = set()

    def at(self, part: slice, batch_size: int) -> Self:
        """Return itself, for these places of a batch."""
        index = part.start // self._microbatch_size
        self._part, self._whole = part, cut_places(batch_size, self._microbatch_size)[index]
        return self

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call a function of PyTorch, or what stands for it here."""
        kwargs = kwargs or {}
        if function is F.batch_norm and kwargs.get("training"):
            return self._batch_norm(*args, **kwargs)
        if function is torch.batch_norm:
            return self._batch_norm_of_torch(*args, **kwargs)
        if function in DROPPING and kwargs.get("training", True):
            return self._drawn(function, *args, **kwargs)
        if _draws(function, args, kwargs):
            self._announce(function.__name__)
        return function(*args, **kwargs)

    def _drawn(self, function: Callable[..., Any], inputs: Tensor, *args: Any, **kwargs: Any) -> Any:
        """Call a function for the whole microbatch, of which only the share is known, and cut.

        What is drawn follows the order of memory: that of the whole has to be the same as that of the share.
        """
        each, rest = divmod(len(inputs), self._part.stop - self._part.start) if inputs.dim() else (0, 1)
        if rest:
            self._announce(function.__name__)
            return function(inputs, *args, **kwargs)
        shape = (each * (self._whole.stop - self._whole.start), *inputs.shape[1:])
        order = sorted(range(inputs.dim()), key=inputs.stride, reverse=True)
        whole = torch.empty_permuted(shape, order, dtype=inputs.dtype, device=inputs.device).zero_()
        first = each * (self._part.start - self._whole.start)
        whole[first : first + len(inputs)] = inputs
        outputs = function(whole, *args, **kwargs)[first : first + len(inputs)]
        return inputs.copy_(outputs) if kwargs.get("inplace") else outputs

    def _batch_norm(
        self,
        inputs: Tensor,
        running_mean: Tensor | None,
        running_variance: Tensor | None,
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        training: bool = True,
        momentum: float = 0.1,
        eps: float = 1e-5,
    ) -> Tensor:
        normalised, mean, variance, count = _Normalised.apply(inputs, eps, self._exchange)
        with torch.no_grad():
            if running_mean is not None:
                running_mean.lerp_(mean.to(running_mean.dtype), momentum)
            if running_variance is not None:
                unbiased = variance * (count / (count - 1))
                running_variance.lerp_(unbiased.to(running_variance.dtype), momentum)
        shape = (1, -1, *(1 for _ in inputs.shape[2:]))
        outputs = normalised if weight is None else normalised * weight.view(shape)
        outputs = outputs if bias is None else outputs + bias.view(shape)
        return outputs.to(inputs.dtype)

    def _batch_norm_of_torch(
        self,
        input: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        running_mean: Tensor | None,
        running_var: Tensor | None,
        training: bool,
        momentum: float,
        eps: float,
        cudnn_enabled: bool,
    ) -> Tensor:
        """Normalise where a module calls what is below `F.batch_norm`, with its arguments in another order."""
        if not training:
            return torch.batch_norm(
                input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled
            )
        return self._batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)

    def _announce(self, name: str) -> None:
        if name in self._announced:
            return
        self._announced.add(name)
        if self._exchange.rank == 0:
            warnings.warn(
                f"{name} draws random numbers in a way that cannot be shared by {self._exchange.size} workers: the"
                " trial is not the one that a single worker trains, and workers may draw the same numbers.",
                stacklevel=2,
            )


def _draws(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether a function draws random numbers that are none of `DROPPING`'s."""
    name = getattr(function, "__name__", "")
    if name in RECURRENT:
        _, _, dropout, is_training, *_ = (each for each in args if isinstance(each, float | int))
        return bool(dropout and is_training)
    if name == "scaled_dot_product_attention":
        return kwargs.get("dropout_p", [*args, 0, 0, 0, 0][4]) > 0
    if name == "multi_head_attention_forward":
        return bool(kwargs.get("training", True)) and args[10] > 0
    if name == "rrelu":  # which draws for numbers below 0 alone
        return bool(kwargs.get("training"))
    return name in DRAWING


class _Normalised(torch.autograd.Function):
    """Normalise [B, C, ...] by the mean and the variance of each channel over the examples of all workers."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, eps: float, exchange: Exchange) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        values = inputs.to(torch.promote_types(inputs.dtype, torch.float32))
        count, mean, variance = _statistics(values, exchange)
        inverse_deviation = _beside((variance + eps).rsqrt(), inputs)
        normalised = (values - _beside(mean, inputs)) * inverse_deviation
        ctx.save_for_backward(normalised, inverse_deviation, count)
        ctx.exchange, ctx.dtype = exchange, inputs.dtype
        ctx.mark_non_differentiable(mean, variance, count)
        return normalised, mean, variance, count

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *output_gradients: Tensor) -> tuple[Tensor | None, None, None]:
        normalised, inverse_deviation, count = ctx.saved_tensors
        outputs, axes = output_gradients[0], _axes(normalised)
        sums = ctx.exchange.sum(torch.stack([outputs.sum(axes), (outputs * normalised).sum(axes)])) / count
        to_mean, to_deviation = (_beside(each, normalised) for each in sums)
        to_inputs = (outputs - to_mean - normalised * to_deviation) * inverse_deviation
        return to_inputs.to(ctx.dtype), None, None


def _statistics(values: Tensor, exchange: Exchange) -> tuple[Tensor, Tensor, Tensor]:
    """Return how many values a channel has with all workers, and the mean [C] and variance [C] of each channel.

    Every worker tells its own means and squared deviations in a row that is its own: sums of squares would round more.
    """
    axes, own = _axes(values), values.numel() // values.shape[1]
    mean = values.mean(axes)
    squares = (values - _beside(mean, values)).square().sum(axes)
    told = values.new_zeros(exchange.size, 2 * len(mean) + 1)
    told[exchange.rank] = torch.cat([mean, squares, mean.new_tensor([own])])
    means, all_squares, counts = exchange.sum(told).split([len(mean), len(mean), 1], 1)
    count = counts.sum()
    whole = (counts * means).sum(0) / count
    variance = (all_squares.sum(0) + (counts * (means - whole).square()).sum(0)) / count
    return count, whole, variance


def _axes(values: Tensor) -> list[int]:
    return [axis for axis in range(values.dim()) if axis != 1]


def _beside(channels: Tensor, values: Tensor) -> Tensor:
    """Return [C] in the shape in which it broadcasts to [B, C, ...]."""
    return channels.view(1, -1, *(1 for _ in values.shape[2:]))
