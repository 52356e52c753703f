"""The callback on a real Trainer, with a tiny model made from its config. Needs the extra `hugging-face`."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from batchlab.doctor.causes import Cause
from batchlab.doctor.hugging_face import EquivalenceCallback

transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")
pytestmark = pytest.mark.filterwarnings("default")  # other people's packages may warn

CONFIG = transformers.LlamaConfig(
    vocab_size=23,
    hidden_size=16,
    intermediate_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    num_key_value_heads=2,
    max_position_embeddings=64,
    pad_token_id=0,
)
LENGTHS = [5, 61, 9, 30, 7, 2, 12, 44]


class Sentences(torch.utils.data.Dataset):
    def __len__(self):
        return len(LENGTHS)

    def __getitem__(self, index):
        random = torch.Generator().manual_seed(index)
        return {"input_ids": torch.randint(1, 23, (LENGTHS[index],), generator=random)}


def collate(items):
    """Fill up to the longest sentence of a microbatch, as collators do: microbatches differ in length."""
    tokens = torch.nn.utils.rnn.pad_sequence([each["input_ids"] for each in items], batch_first=True)
    return {
        "input_ids": tokens,
        "attention_mask": (tokens != 0).long(),
        "labels": tokens.where(tokens != 0, torch.tensor(-100)),
    }


def trained(tmp_path, trainer_class=transformers.Trainer, accumulation=4, dropout=0.0, **keywords):
    """Train two updates with the callback; return its verdict and the weights."""
    transformers.set_seed(0)
    config = transformers.LlamaConfig(**{**CONFIG.to_dict(), "attention_dropout": dropout})
    trainer = trainer_class(
        model=transformers.LlamaForCausalLM(config),
        args=transformers.TrainingArguments(
            output_dir=str(tmp_path),
            per_device_train_batch_size=2,
            gradient_accumulation_steps=accumulation,
            max_steps=2,
            report_to=[],
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
            use_cpu=True,
        ),
        train_dataset=Sentences(),
        data_collator=collate,
        **keywords,
    )
    callback = EquivalenceCallback(trainer)
    trainer.add_callback(callback)
    trainer.train()
    return callback.verdict, trainer


def test_the_trainer_is_right(tmp_path):
    verdict, trainer = trained(tmp_path)

    assert verdict.is_equivalent, verdict
    assert verdict.num_examples == 8
    assert verdict.rows[0].cut == "4 x 2"
    assert verdict.rows[0].comparison.norm_ratio == pytest.approx(1, abs=1e-5)
    assert trainer.state.global_step == 2
    assert trainer.training_step.__func__ is transformers.Trainer.training_step


class MeanOfMeans(transformers.Trainer):
    """Says nothing of the tokens of all microbatches, as every Trainer did until October 2024."""

    def __init__(self, *arguments, **keywords):
        super().__init__(*arguments, **keywords)
        self.model_accepts_loss_kwargs = False


def test_a_trainer_that_averages_means_is_told_so(tmp_path):
    with pytest.warns(UserWarning, match="Trainer: NOT equivalent"):
        verdict, _ = trained(tmp_path, MeanOfMeans)

    assert verdict.causes == (Cause.MEAN_OF_MEANS,)


def mean_loss(outputs, labels, num_items_in_batch=None):
    """A loss of one's own that takes its mean, though the Trainer counts on it to divide by all tokens."""
    logits, targets = outputs.logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()
    return torch.nn.functional.cross_entropy(logits, targets, ignore_index=-100)


def test_a_loss_that_ignores_the_number_of_tokens_is_told(tmp_path):
    with pytest.warns(UserWarning, match="4, the number of microbatches"):
        verdict, _ = trained(tmp_path, compute_loss_func=mean_loss)

    assert verdict.causes == (Cause.MEAN_OF_MEANS, Cause.FACTOR)


def test_dropout_is_told(tmp_path):
    with pytest.warns(UserWarning, match="Trainer: NOT equivalent"):
        verdict, _ = trained(tmp_path, dropout=0.3)

    assert verdict.causes == (Cause.DROPOUT,)


def tell(folder):
    """Print what one of several workers is told of two trainers; `PYTHONPATH` and the variables of torchrun are set."""
    verdicts = [trained(folder, each, accumulation=2)[0] for each in (transformers.Trainer, MeanOfMeans)]
    print(json.dumps([verdict.plain() for verdict in verdicts]))


def test_two_workers_are_told_the_same(tmp_path):
    root, port = Path(__file__).parents[2], free_port()
    shared = {
        **os.environ,
        **{"PYTHONPATH": os.pathsep.join([str(root / "src"), str(root), *filter(None, sys.path)])},
        **{"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"},
    }
    code = f"from tests.doctor.test_hugging_face import tell; tell({str(tmp_path)!r})"
    workers = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", code],
            env={**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        outputs = [worker.communicate(timeout=300) for worker in workers]
    finally:
        for worker in workers:
            worker.kill()

    assert [worker.returncode for worker in workers] == [0, 0], outputs
    first, second = (json.loads(out.splitlines()[-1]) for out, _ in outputs)
    assert first == second
    right, wrong = first
    assert right["equivalent"] and right["rows"][0]["cut"] == "2 x 2 each"
    assert [each["name"] for each in wrong["causes"]] == ["mean of means"]


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as place:
        return place.getsockname()[1]


def test_training_goes_on_as_if_nobody_had_looked(tmp_path, monkeypatch):
    _, watched = trained(tmp_path)
    monkeypatch.setattr(EquivalenceCallback, "on_train_begin", lambda *arguments, **keywords: None)
    verdict, unwatched = trained(tmp_path)

    assert verdict is None
    weights = zip(watched.model.state_dict().values(), unwatched.model.state_dict().values(), strict=True)
    assert all(torch.equal(one, other) for one, other in weights)
