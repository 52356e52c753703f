"""Training loops of a small language model: a right one, and seven wrong ones that frameworks have shipped."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

VOCABULARY, IGNORED = 11, -100
PADDING = {"tokens": 0, "labels": IGNORED}


class LanguageModel(nn.Module):
    """Says the next token from all before it; `norm` and `dropout` where wanted."""

    def __init__(self, norm: nn.Module | None = None, dropout: float = 0.0) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding, self.hidden = nn.Embedding(VOCABULARY, 8), nn.Linear(8, 8)
        self.norm, self.dropout, self.head = norm or nn.Identity(), nn.Dropout(dropout), nn.Linear(8, VOCABULARY)

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = torch.tanh(self.hidden(self.embedding(tokens))).cumsum(1)
        return self.head(self.dropout(self.norm(hidden.transpose(1, 2)).transpose(1, 2)))


def sentences(*lengths: int) -> dict[str, Tensor]:
    """Return one sentence of each length, filled up to the longest."""
    random = torch.Generator().manual_seed(1)
    tokens = torch.randint(1, VOCABULARY, (len(lengths), max(lengths) + 1), generator=random)
    is_word = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return {
        "tokens": torch.where(is_word, tokens[:, :-1], 0),
        "labels": torch.where(is_word, tokens[:, 1:], IGNORED),
    }


EIGHT = (12, 3, 7, 5, 12, 9, 4, 10)


def token_loss(model: nn.Module, batch: dict[str, Tensor], reduction: str = "mean") -> Tensor:
    logits = model(batch["tokens"]).flatten(0, 1)
    return F.cross_entropy(logits, batch["labels"].flatten(), ignore_index=IGNORED, reduction=reduction)


def num_tokens(microbatches: list[dict[str, Tensor]]) -> Tensor:
    return torch.stack([(each["labels"] != IGNORED).sum() for each in microbatches]).sum()


def right(model, microbatches, worker):
    """Adds up losses and divides by the tokens of all workers; DDP's mean over workers is undone."""
    total = worker.sum(num_tokens(microbatches))
    for microbatch in microbatches:
        (token_loss(model, microbatch, "sum") / total * worker.num_workers).backward()


def right_alone(model, microbatches):
    total = num_tokens(microbatches)
    for microbatch in microbatches:
        (token_loss(model, microbatch, "sum") / total).backward()


def mean_of_means(model, microbatches):
    for microbatch in microbatches:
        (token_loss(model, microbatch) / len(microbatches)).backward()


def factor_twice(model, microbatches):
    total = num_tokens(microbatches)
    for microbatch in microbatches:
        (token_loss(model, microbatch, "sum") / total / len(microbatches)).backward()


def clipped_each(model, microbatches):
    total = num_tokens(microbatches)
    for microbatch in microbatches:
        (token_loss(model, microbatch, "sum") / total).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.05)


def dropout_by_rank(model, microbatches, worker):
    torch.manual_seed(worker.rank)
    right(model, microbatches, worker)


def ragged_dropped(model, microbatches):
    size = len(microbatches[0]["tokens"])
    right_alone(model, [each for each in microbatches if len(each["tokens"]) == size])


def contrastive(model, microbatches):
    """Tells each sentence from the others of its microbatch."""
    examples = sum(len(each["tokens"]) for each in microbatches)
    for microbatch in microbatches:
        vectors = F.normalize(model(microbatch["tokens"]).mean(1), dim=1)
        loss = F.cross_entropy(5 * vectors @ vectors.T, torch.arange(len(vectors)), reduction="sum")
        (loss / examples).backward()
