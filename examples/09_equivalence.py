"""Is `accumulate 4 x 2` the same as a batch of 8? A loop with a mistake that every framework has shipped.

Run it with `python 09_equivalence.py`, or `batchlab check 09_equivalence.py`: it ends with exit code 1 where it is not.
"""

import torch
from torch import nn

import batchlab

WORDS, LENGTH, IGNORED = 20, 30, -100


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.cell, self.head = nn.Embedding(WORDS, 16), nn.GRU(16, 16), nn.Linear(16, WORDS)

    def forward(self, words):
        return self.head(self.cell(self.embedding(words).transpose(0, 1))[0]).transpose(0, 1)


def sentences(count):
    """Sentences of 3 to 30 words, filled up; labels that are ignored are no tokens."""
    words = torch.randint(1, WORDS, (count, LENGTH + 1))
    is_word = torch.arange(LENGTH) < torch.randint(3, LENGTH, (count, 1))
    return {"words": words[:, :-1] * is_word, "labels": words[:, 1:].where(is_word, IGNORED)}


def loss_of(model, batch, reduction="mean"):
    logits, labels = model(batch["words"]).flatten(0, 1), batch["labels"].flatten()
    return nn.functional.cross_entropy(logits, labels, ignore_index=IGNORED, reduction=reduction)


def wrong_step(model, microbatches):
    """Accumulate as most loops do: each microbatch counts the same, however few tokens it has."""
    for batch in microbatches:
        (loss_of(model, batch) / len(microbatches)).backward()
    optimizer.step()  # the doctor stops here: the weights stay as they are
    optimizer.zero_grad()


def right_step(model, microbatches, worker):
    """Divide by the tokens of all microbatches of all workers; DDP's mean over workers is undone."""
    tokens = worker.sum(sum((batch["labels"] != IGNORED).sum() for batch in microbatches))
    for batch in microbatches:
        (loss_of(model, batch, "sum") / tokens * worker.num_workers).backward()


torch.manual_seed(0)
model, batch, padding = Net(), sentences(8), {"words": 0, "labels": IGNORED}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
check = batchlab.equivalence(wrong_step, batch, model)

if __name__ == "__main__":
    print(check)
    print()
    print(batchlab.equivalence(right_step, batch, model, padding=padding))
