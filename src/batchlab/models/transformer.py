"""The decoder-only Transformer: causal self-attention and ReLU feed-forward layers, no dropout.

It is the decoder of Vaswani et al. 2017 without attention to an encoder. Where the paper's text could not be
confirmed, these are our choices:

- Layer normalisation stands before each sublayer and once at the end ("pre-norm"). The original normalises after
  each sum, which needs a warm-up of the learning rate; the paper uses none.
- Attention and the projection before the softmax have no biases, as in the equations of the original.
- Embeddings start normal with standard deviation width**-0.5 and are scaled by sqrt(width); all other matrices start
  Glorot-uniform, biases at 0, norm scales at 1.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from batchlab.models.averages import RunningAverages
from batchlab.models.base import Parameters, ParameterShape, SingleTrialModel
from batchlab.models.fully_connected import dense_shapes
from batchlab.models.tokens import tokens_before

LONGEST_WAVE = 10_000
"""The slowest position wave repeats after this many times 2 pi tokens."""


class Transformer(SingleTrialModel):
    """Logits [B, T, V] for tokens [B, T]; those at a position are a function of the tokens before it.

    Padding needs no mask: it stands only after the end of a sentence, and attention looks only back. Positions are
    waves without parameters, so that a sentence may have any length; `num_tokens`, the length of a training example,
    serves only to count `multiplications`.
    """

    def __init__(
        self,
        num_tokens: int,
        vocabulary: int,
        layers: int = 6,
        width: int = 512,
        feed_forward: int = 2048,
        heads: int = 8,
    ) -> None:
        self.layers, self.width, self.heads = layers, width, heads
        self.shapes: dict[str, ParameterShape] = {
            "embedding.weight": ParameterShape((vocabulary, width), std=width**-0.5)
        }
        for layer in range(layers):
            self.shapes |= _layer_shapes(f"layer_{layer}", width, feed_forward)
        self.shapes |= _norm_shapes("norm", width)
        self.shapes["softmax.weight"] = ParameterShape((vocabulary, width), width, vocabulary)
        for_each_token = layers * (4 * width * width + 2 * width * feed_forward) + width * vocabulary
        attention = layers * num_tokens * (num_tokens + 1) * width  # scores and sums, of the tokens up to each one
        self.multiplications = num_tokens * for_each_token + attention

    def forward(self, parameters: Parameters, inputs: Tensor, averages: RunningAverages | None) -> Tensor:
        """Return the logits [B, T, V] of one trial."""
        values = F.embedding(tokens_before(inputs), parameters["embedding.weight"]) * math.sqrt(self.width)
        values = values + _position_waves(values)
        for layer in (f"layer_{number}" for number in range(self.layers)):
            values = values + self._attention(parameters, layer, values)
            values = values + _feed_forward(parameters, layer, values)
        return F.linear(_norm(parameters, "norm", values), parameters["softmax.weight"])

    def _attention(self, parameters: Parameters, layer: str, values: Tensor) -> Tensor:
        normed = _norm(parameters, f"{layer}.attention_norm", values)
        joined = F.linear(normed, parameters[f"{layer}.attention_in.weight"])  # [B, T, 3 * width]
        queries, keys, contents = joined.unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)  # [B, heads, T, -1]
        attended = F.scaled_dot_product_attention(queries, keys, contents, is_causal=True)
        return F.linear(attended.transpose(1, 2).flatten(2), parameters[f"{layer}.attention_out.weight"])


def _feed_forward(parameters: Parameters, layer: str, values: Tensor) -> Tensor:
    normed = _norm(parameters, f"{layer}.dense_norm", values)
    hidden = F.linear(normed, parameters[f"{layer}.dense_0.weight"], parameters[f"{layer}.dense_0.bias"]).relu_()
    return F.linear(hidden, parameters[f"{layer}.dense_1.weight"], parameters[f"{layer}.dense_1.bias"])


def _norm(parameters: Parameters, name: str, values: Tensor) -> Tensor:
    return F.layer_norm(values, values.shape[-1:], parameters[f"{name}.scale"], parameters[f"{name}.bias"])


def _position_waves(values: Tensor) -> Tensor:
    """Return [T, width] for values [B, T, width]: sines in the even places, cosines in the odd ones."""
    num_tokens, width = values.shape[1:]
    places = torch.arange(0, width, 2, dtype=values.dtype, device=values.device)
    positions = torch.arange(num_tokens, dtype=values.dtype, device=values.device)
    angles = torch.outer(positions, LONGEST_WAVE ** (-places / width))
    return torch.stack((angles.sin(), angles.cos()), 2).flatten(1)[:, :width]


def _layer_shapes(layer: str, width: int, feed_forward: int) -> dict[str, ParameterShape]:
    return {
        **_norm_shapes(f"{layer}.attention_norm", width),
        # Queries, keys and values in one product; each third starts as a matrix of its own.
        f"{layer}.attention_in.weight": ParameterShape((3 * width, width), width, width),
        f"{layer}.attention_out.weight": ParameterShape((width, width), width, width),
        **_norm_shapes(f"{layer}.dense_norm", width),
        **dense_shapes(f"{layer}.dense_0", width, feed_forward),
        **dense_shapes(f"{layer}.dense_1", feed_forward, width),
    }


def _norm_shapes(name: str, width: int) -> dict[str, ParameterShape]:
    return {
        f"{name}.scale": ParameterShape((width,), constant=1.0),
        f"{name}.bias": ParameterShape((width,)),
    }
