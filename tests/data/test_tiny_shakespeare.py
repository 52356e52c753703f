from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from batchlab.core.tokens import PADDING
from batchlab.data.base import Examples
from batchlab.data.files import Source
from batchlab.data.tiny_shakespeare import TINY_SHAKESPEARE, load
from batchlab.errors import DataError


def offline(url: str, max_bytes: int) -> bytes:
    raise OSError("no network")


def text_of(examples: Examples, characters: list[str]) -> str:
    return "".join(characters[token - 3] for token in examples.inputs.reshape(-1) if token != PADDING)


def test_the_three_splits_join_to_the_text(shared_data):
    text = (shared_data / "tiny-shakespeare" / "input.txt").read_text("utf-8")
    loaded = load(Source(shared_data).read)
    parts = [text_of(split, sorted(set(text))) for split in (loaded.train, loaded.val, loaded.test)]

    assert "".join(parts) == text
    assert [len(part) for part in parts] == [1_003_854, 55_770, 55_770]


def test_splits_have_the_sizes_that_the_facts_promise(shared_data):
    """1,003,854 / 64 and 55,770 / 64, rounded up; 65 characters and three special tokens."""
    facts, loaded = TINY_SHAKESPEARE, load(Source(shared_data).read)

    assert (len(loaded.train), len(loaded.val), len(loaded.test)) == (15_686, 872, 872)
    assert (facts.train_examples, facts.val_examples, facts.test_examples) == (15_686, 872, 872)
    assert loaded.input_shape == facts.input_shape == (64,)
    assert loaded.num_classes == facts.num_classes == 68
    assert np.unique(loaded.train.inputs).tolist() == [PADDING, *range(3, 68)]
    assert loaded.train.inputs.dtype == np.uint16


@pytest.mark.parametrize("content", [b"", b"To be, or not to be"])
def test_another_file_of_that_name_is_refused(tmp_path: Path, content: bytes):
    (tmp_path / "tiny-shakespeare").mkdir()
    (tmp_path / "tiny-shakespeare" / "input.txt").write_bytes(content)

    with pytest.raises(DataError, match=r"input\.txt is not the published"):
        load(Source(tmp_path, offline).read)
