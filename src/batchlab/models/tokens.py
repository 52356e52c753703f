"""What every language model does with its inputs: each token is predicted from the tokens before it."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from batchlab.core.tokens import START


def tokens_before(inputs: Tensor) -> Tensor:
    """Return [B, T] of int64: at each position the token one earlier, and START at the first.

    >>> import torch
    >>> tokens_before(torch.tensor([[7, 8, 9]]))
    tensor([[1, 7, 8]])
    """
    return F.pad(inputs.long()[:, :-1], (1, 0), value=START)
