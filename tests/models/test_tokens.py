"""What a language model is fed when it predicts a token."""

from __future__ import annotations

import pytest
import torch

from batchlab.core.tokens import PADDING, START
from batchlab.models.tokens import tokens_before


@pytest.mark.parametrize("dtype", [torch.uint8, torch.uint16, torch.int32, torch.int64])
def test_every_token_moves_on_by_one_place(dtype):
    tokens = torch.tensor([[7, 8, 9], [5, 6, PADDING]]).to(dtype)

    assert tokens_before(tokens).tolist() == [[START, 7, 8], [START, 5, 6]]
    assert tokens_before(tokens).dtype == torch.int64


def test_a_sentence_of_one_token_is_predicted_from_the_start():
    assert tokens_before(torch.tensor([[7]])).tolist() == [[START]]
