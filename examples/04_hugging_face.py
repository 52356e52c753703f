"""A Hugging Face model, studied: a tiny BERT tells which half of its vocabulary most words of a sentence come from.

Made from its config with random weights, so that nothing is fetched. It needs `pip install '.[hugging-face]'`.
Run it with `batchlab run 04_hugging_face.py`.
"""

import datasets
import torch
from transformers import BertConfig, BertForSequenceClassification

import batchlab

WORDS, LENGTH = 20, 9
CONFIG = BertConfig(
    vocab_size=WORDS + 1,  # 0 fills sentences up
    hidden_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=32,
    max_position_embeddings=LENGTH,
)


def sentences(count, seed):
    """Sentences of 3 to 9 words, and whether most of them are of the upper half."""
    random = torch.Generator().manual_seed(seed)
    is_word = torch.arange(LENGTH) < 3 + 2 * torch.randint(0, 4, (count, 1), generator=random)
    words = torch.randint(1, WORDS + 1, (count, LENGTH), generator=random) * is_word
    labels = (words > WORDS // 2).sum(1) > is_word.sum(1) / 2
    columns = {"input_ids": words, "attention_mask": is_word.long(), "labels": labels.long()}
    return datasets.Dataset.from_dict({name: each.tolist() for name, each in columns.items()}).with_format("torch")


def training_step(model, batch):
    return model(**batch).loss


def error(model, batch):
    return (model(**batch).logits.argmax(1) != batch["labels"]).float().mean()


sweep = batchlab.TorchSweep(
    name="halves",
    model=lambda: BertForSequenceClassification(CONFIG),
    train=sentences(400, seed=0),
    val=sentences(100, seed=1),
    training_step=training_step,
    metrics={"error": error},
    optimizer="adamw",
    batch_sizes=[8, 32],
    goal="val/error < 0.1",
    search_space={"learning_rate": (3e-3, 3e-2, "log")},
    trials=2,
    max_steps=100,
    evaluate={"every": 10},
)

if __name__ == "__main__":
    print(batchlab.run_sweep(sweep, "halves-lab"))
