"""What a module of the user's own may call on a share of a microbatch."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from batchlab.engine.gang.exchange import Alone
from batchlab.engine.gang.whole_batch import WholeBatch


class Counting(Alone):
    """The only worker, which counts what it would tell others."""

    def __init__(self):
        self.number = 0

    def sum(self, tensor):
        self.number += 1
        return tensor


@pytest.mark.parametrize("is_training", [True, False])
def test_batch_normalisation_has_all_workers_by_whichever_name_it_is_called(is_training):
    inputs, (weight, bias, mean) = torch.randn(8, 3), torch.randn(3, 3)
    variance, exchange = torch.rand(3), Counting()
    expected = F.batch_norm(inputs, mean.clone(), variance.clone(), weight, bias, is_training)

    with WholeBatch(exchange, 8).at(slice(0, 8), 8):
        found = torch.batch_norm(inputs, weight, bias, mean, variance, is_training, 0.1, 1e-5, False)

    assert exchange.number == int(is_training)
    assert torch.allclose(found, expected, atol=1e-6)


def test_what_draws_for_itself_is_announced():
    inputs = torch.randn(8, 3)

    with WholeBatch(Counting(), 8).at(slice(0, 8), 8), pytest.warns(UserWarning, match="native_dropout draws random"):
        torch.native_dropout(inputs, 0.5, True)


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize(("dropout", "is_announced"), [(0.5, True), (1, True), (0, False), (0.0, False)])
def test_dropout_between_recurrent_layers_is_announced(dropout, is_announced, is_packed, recwarn):
    network = torch.nn.LSTM(3, 4, num_layers=2, dropout=dropout, bidirectional=True, batch_first=True)
    inputs = torch.randn(8, 5, 3)
    if is_packed:
        inputs = torch.nn.utils.rnn.pack_padded_sequence(inputs, [5] * 8, batch_first=True)

    with WholeBatch(Counting(), 8).at(slice(0, 8), 8):
        network(inputs)

    assert any("lstm draws random" in str(each.message) for each in recwarn) == is_announced
