"""The LSTM language model: one recurrent layer with a projection, full softmax.

It is the LSTM-2048-512 of Jozefowicz et al. 2016: the state that recurs and is read out is a projection of the hidden
units, h = W_projection (o * tanh(c)). Our choices, where nothing is confirmed: the bias of the forget gate starts at 1,
so that the memory lasts from the start; embeddings start normal with standard deviation 0.1; matrices start
Glorot-uniform, the two of the gates as one matrix on [token, state]; other biases start at 0.
"""

from __future__ import annotations

import warnings

import torch
import torch.nn.functional as F
from torch import Tensor

from batchlab.models.averages import RunningAverages
from batchlab.models.base import Parameters, ParameterShape, SingleTrialModel
from batchlab.models.fully_connected import dense_shapes
from batchlab.models.tokens import tokens_before

GATES = ("input", "forget", "cell", "output")
"""The order in which PyTorch stacks the gates."""

EMBEDDING_STD = 0.1


class Lstm(SingleTrialModel):
    """Logits [B, T, V] for tokens [B, T]; those at a position are a function of the tokens before it.

    A sentence may have any length; `num_tokens`, the length of a training example, serves only to count
    `multiplications`.
    """

    def __init__(self, num_tokens: int, vocabulary: int, embedding: int, hidden: int, projection: int) -> None:
        self.hidden, self.projection = hidden, projection
        fans = embedding + projection, 4 * hidden
        self.shapes: dict[str, ParameterShape] = {
            "embedding.weight": ParameterShape((vocabulary, embedding), std=EMBEDDING_STD),
            "gates.token_weight": ParameterShape((4 * hidden, embedding), *fans),
            "gates.state_weight": ParameterShape((4 * hidden, projection), *fans),
            **{f"{gate}_gate.bias": ParameterShape((hidden,), constant=float(gate == "forget")) for gate in GATES},
            "projection.weight": ParameterShape((projection, hidden), hidden, projection),
            **dense_shapes("softmax", projection, vocabulary),
        }
        for_each_token = 4 * hidden * (embedding + projection) + hidden * projection + projection * vocabulary
        self.multiplications = num_tokens * for_each_token

    def forward(self, parameters: Parameters, inputs: Tensor, averages: RunningAverages | None) -> Tensor:
        """Return the logits [B, T, V] of one trial."""
        values = F.embedding(tokens_before(inputs), parameters["embedding.weight"])
        states = self._recur(parameters, values)
        return F.linear(states, parameters["softmax.weight"], parameters["softmax.bias"])

    def _recur(self, parameters: Parameters, values: Tensor) -> Tensor:
        """Return the projected states [B, T, projection] for embedded tokens [B, T, embedding]."""
        bias = torch.cat([parameters[f"{gate}_gate.bias"] for gate in GATES])
        weights = [
            parameters["gates.token_weight"],
            parameters["gates.state_weight"],
            bias,
            torch.zeros_like(bias),  # PyTorch adds two biases; one is enough
            parameters["projection.weight"],
        ]
        start = values.new_zeros(1, len(values), self.projection), values.new_zeros(1, len(values), self.hidden)
        train = torch.is_grad_enabled()
        with warnings.catch_warnings():
            # They say that a faster way exists, for a layer without projection or with weights kept by themselves.
            warnings.filterwarnings("ignore", "LSTM with projections|RNN module weights", UserWarning)
            return torch.lstm(values, start, weights, True, 1, 0.0, train, False, batch_first=True)[0]
