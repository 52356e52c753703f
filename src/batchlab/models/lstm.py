"""The LSTM language model: one recurrent layer with a projection, full softmax.

It is the LSTM-2048-512 of Jozefowicz et al. 2016: the state that recurs and is read out is a projection of the hidden
units, h = W_projection (o * tanh(c)). Our choices, where nothing is confirmed: the bias of the forget gate starts at 1,
so that the memory lasts from the start; embeddings start normal with standard deviation 0.1; matrices start
Glorot-uniform, the two of the gates as one matrix on [token, state]; other biases start at 0.
"""

from __future__ import annotations

import warnings

import numpy as np
import torch
from torch import Tensor

from batchlab.models.base import Layer, Network, fill_constant, fill_glorot, parameter
from batchlab.models.layers import Dense, Embedding
from batchlab.models.tokens import tokens_before

EMBEDDING_STD = 0.1


class Lstm(Network):
    """Logits [B, T, V] for tokens [B, T]; those at a position are a function of the tokens before it.

    A sentence may have any length.
    """

    def __init__(self, num_tokens: int, vocabulary: int, embedding: int, hidden: int, projection: int) -> None:
        super().__init__()
        self.embedding = Embedding(vocabulary, embedding, EMBEDDING_STD)
        self.recurrent = _Recurrent(embedding, hidden, projection)
        self.softmax = Dense(projection, vocabulary)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits [B, T, V]."""
        return self.softmax(self.recurrent(self.embedding(tokens_before(tokens))))


class _Recurrent(Layer):
    """Gates on the token and the last state, the cell, and a projection of what it lets out."""

    def __init__(self, embedding: int, hidden: int, projection: int) -> None:
        super().__init__()
        self.hidden, self.projection = hidden, projection
        self.token_weight = parameter(4 * hidden, embedding)
        self.state_weight = parameter(4 * hidden, projection)
        self.input_bias = parameter(hidden)
        self.forget_bias = parameter(hidden)
        self.cell_bias = parameter(hidden)
        self.output_bias = parameter(hidden)
        self.projection_weight = parameter(projection, hidden)

    def start(self, init: np.random.Generator) -> None:
        """Draw the matrices Glorot-uniform; the forget gate begins open."""
        fans = self.token_weight.shape[1] + self.projection, 4 * self.hidden
        fill_glorot(self.token_weight, init, fans)
        fill_glorot(self.state_weight, init, fans)
        for bias in self._biases:
            fill_constant(bias, float(bias is self.forget_bias))
        fill_glorot(self.projection_weight, init, (self.hidden, self.projection))

    @property
    def _biases(self) -> tuple[torch.nn.Parameter, ...]:
        """The biases of the gates, in the order in which PyTorch stacks them."""
        return self.input_bias, self.forget_bias, self.cell_bias, self.output_bias

    def forward(self, values: Tensor) -> Tensor:
        """Return the projected states [B, T, projection] for embedded tokens [B, T, embedding]."""
        bias = torch.cat(self._biases)
        no_bias = torch.zeros_like(bias)  # PyTorch adds two; one is enough
        weights = [self.token_weight, self.state_weight, bias, no_bias, self.projection_weight]
        start = values.new_zeros(1, len(values), self.projection), values.new_zeros(1, len(values), self.hidden)
        with warnings.catch_warnings():
            # They say that a faster way exists, for a layer without projection or with weights kept by themselves.
            warnings.filterwarnings("ignore", "LSTM with projections|RNN module weights", UserWarning)
            return torch.lstm(values, start, weights, True, 1, 0.0, torch.is_grad_enabled(), False, batch_first=True)[0]
