from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest

from batchlab.core.tokens import END, PADDING
from batchlab.data import token_cache, vocabulary, wikitext_2
from batchlab.data.files import Source
from batchlab.data.wikitext_2 import WIKITEXT_2
from batchlab.errors import DataError

QUICK = replace(WIKITEXT_2, files=(WIKITEXT_2.files[1], WIKITEXT_2.files[1], WIKITEXT_2.files[2]))
"""Learns from the validation split, a tenth of the training split."""


def test_names_sizes_and_checksums_are_those_of_the_published_files(shared_data):
    sums = dict(reversed(line.split()) for line in (shared_data / "SHA256SUMS").read_text().splitlines())

    for file in WIKITEXT_2.files:
        assert file.sha256 == sums[str(file)]
        assert file.num_bytes == (shared_data / str(file)).stat().st_size


def test_the_text_is_cut_into_pieces_that_join_to_it_again(shared_data, monkeypatch):
    """217,646 words, with one end for each of the 3,760 lines: the notes beside the files."""
    options = {"vocabulary_size": 500, "num_tokens": 50}
    loaded = wikitext_2.load(options, Source(shared_data), QUICK)

    tokens = loaded.val.inputs.reshape(-1)
    text = tokens[tokens != PADDING]
    assert loaded.input_shape == (50,) and loaded.num_classes == 500 and loaded.task == "language_model"
    assert PADDING not in loaded.val.inputs[:-1]
    assert np.count_nonzero(text == END) == 3_760
    tokenizer = vocabulary.load_or_train(
        "wikitext_2", [(QUICK.files[0].sha256, QUICK.files[0].num_bytes, 0)], 500, lambda: pytest.fail("learned again")
    )
    lines = [vocabulary.decode(tokenizer, line) for line in np.split(text, np.flatnonzero(text == END))]
    assert sum(len(line.split()) for line in lines) + 3_760 == 217_646
    assert lines[1] == "= Homarus gammarus ="

    def again(*arguments: object) -> None:
        raise AssertionError("done again")

    monkeypatch.setattr(vocabulary, "train_vocabulary", again)
    monkeypatch.setattr(token_cache, "encode", again)
    second = wikitext_2.load(options, Source(shared_data), QUICK)
    assert np.array_equal(second.test.inputs, loaded.test.inputs)


def test_another_file_of_that_name_is_refused(shared_data, tmp_path):
    shutil.copytree(shared_data / "wikitext-2", tmp_path / "wikitext-2", copy_function=shutil.copyfile)
    with (tmp_path / "wikitext-2" / "wiki.valid.tokens").open("r+b") as file:
        file.write(b"X")

    with pytest.raises(DataError, match=r"wiki\.valid\.tokens is not the published"):
        wikitext_2.load({}, Source(tmp_path), QUICK)
