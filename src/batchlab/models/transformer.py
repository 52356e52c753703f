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
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from batchlab.models.base import Network
from batchlab.models.layers import Dense, Embedding, LayerNorm
from batchlab.models.tokens import tokens_before
from batchlab.models.transforms import with_plain

LONGEST_WAVE = 10_000
"""The slowest position wave repeats after this many times 2 pi tokens."""


class Transformer(Network):
    """Logits [B, T, V] for tokens [B, T]; those at a position are a function of the tokens before it.

    Padding needs no mask: it stands only after the end of a sentence, and attention looks only back. Positions are
    waves without parameters, so that a sentence may have any length.
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
        super().__init__()
        self.width = width
        self.embedding = Embedding(vocabulary, width, std=width**-0.5)
        self.layers = [_Layer(width, feed_forward, heads) for _ in range(layers)]
        for number, layer in enumerate(self.layers):
            self.add_module(f"layer_{number}", layer)
        self.norm = LayerNorm(width)
        self.softmax = Dense(width, vocabulary, has_bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits [B, T, V]."""
        values = self.embedding(tokens_before(tokens)) * math.sqrt(self.width)
        values = values + _position_waves(values)
        for layer in self.layers:
            values = layer(values)
        return self.softmax(self.norm(values))


class _Layer(nn.Module):
    """Self-attention, then a feed-forward network, each added to what it read."""

    def __init__(self, width: int, feed_forward: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm = LayerNorm(width)
        # Queries, keys and values in one product; each third starts as a matrix of its own.
        self.attention_in = Dense(width, 3 * width, has_bias=False, fans=(width, width))
        self.attention_out = Dense(width, width, has_bias=False)
        self.dense_norm = LayerNorm(width)
        self.dense_0 = Dense(width, feed_forward)
        self.dense_1 = Dense(feed_forward, width)

    def forward(self, values: Tensor) -> Tensor:
        values = values + self._attention(self.attention_norm(values))
        return values + self.dense_1(self.dense_0(self.dense_norm(values)).relu_())

    def _attention(self, values: Tensor) -> Tensor:
        joined = self.attention_in(values)  # [B, T, 3 * width]
        queries, keys, contents = joined.unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)  # [B, heads, T, -1]
        attended = with_plain(_attend, _attend_plainly, queries, keys, contents)
        return self.attention_out(attended.transpose(1, 2).flatten(2))


def _attend(queries: Tensor, keys: Tensor, contents: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(queries, keys, contents, is_causal=True)


def _attend_plainly(queries: Tensor, keys: Tensor, contents: Tensor) -> Tensor:
    """Attend by products and a softmax, which can be differentiated any number of times."""
    with sdpa_kernel(SDPBackend.MATH):
        return _attend(queries, keys, contents)


def _position_waves(values: Tensor) -> Tensor:
    """Return [T, width] for values [B, T, width]: sines in the even places, cosines in the odd ones."""
    num_tokens, width = values.shape[1:]
    places = torch.arange(0, width, 2, dtype=values.dtype, device=values.device)
    positions = torch.arange(num_tokens, dtype=values.dtype, device=values.device)
    angles = torch.outer(positions, LONGEST_WAVE ** (-places / width))
    return torch.stack((angles.sin(), angles.cos()), 2).flatten(1)[:, :width]
