from __future__ import annotations

import numpy as np
import pytest

from batchlab.core.tokens import END, PADDING
from batchlab.data import token_cache
from batchlab.data.token_cache import load_or_make, piece_rows, sentence_rows, token_dtype, whole_sentence_rows
from batchlab.data.vocabulary import train_vocabulary
from batchlab.errors import DataError

BYTES = train_vocabulary(["nothing to merge"], 259)
"""A vocabulary of single bytes: as many tokens as characters, and END."""


def tokens_of(text: str) -> list[int]:
    return [BYTES.token_to_id(character) for character in text]


def test_a_short_sentence_is_ended_and_filled_up_and_a_long_one_clipped():
    (rows,) = sentence_rows(["ab", "abcd", "abcde"], BYTES, num_tokens=4)

    assert rows.tolist() == [[*tokens_of("ab"), END, PADDING], tokens_of("abcd"), tokens_of("abcd")]
    assert rows.dtype == np.uint16


def test_whole_sentences_are_as_wide_as_the_longest_one():
    (rows,) = whole_sentence_rows(["ab", "abcde"], BYTES)

    assert rows.tolist() == [[*tokens_of("ab"), END, PADDING, PADDING, PADDING], [*tokens_of("abcde"), END]]


@pytest.mark.parametrize(("max_tokens", "width"), [(3, 3), (6, 6), (7, 6)])
def test_whole_sentences_have_at_most_the_tokens_that_are_allowed(max_tokens, width):
    (rows,) = whole_sentence_rows(["ab", "abcde"], BYTES, max_tokens)

    assert rows.shape == (2, width)


@pytest.mark.parametrize("batch_sentences", [1, 2, 100])
def test_pieces_run_on_over_the_ends_of_sentences(monkeypatch, batch_sentences):
    monkeypatch.setattr(token_cache, "BATCH_SENTENCES", batch_sentences)

    rows = np.concatenate(list(piece_rows(["ab", "", "cdef"], BYTES, num_tokens=3)))

    assert rows.tolist() == [[*tokens_of("ab"), END], [END, *tokens_of("cd")], [*tokens_of("ef"), END]]


def test_the_last_piece_is_filled_up():
    rows = np.concatenate(list(piece_rows(["abc"], BYTES, num_tokens=3)))

    assert rows.tolist() == [tokens_of("abc"), [END, PADDING, PADDING]]


@pytest.mark.parametrize(("size", "dtype"), [(259, "uint16"), (65_536, "uint16"), (65_537, "int32")])
def test_tokens_take_two_bytes_where_the_vocabulary_allows_it(size, dtype):
    assert token_dtype(size) == dtype


def test_sentences_are_encoded_a_few_at_a_time(monkeypatch):
    monkeypatch.setattr(token_cache, "BATCH_SENTENCES", 10)
    num_read = 0

    def sentences():
        nonlocal num_read
        for num_read in range(1, 26):  # noqa: B007
            yield "ab"

    sizes = []
    for block in sentence_rows(sentences(), BYTES, num_tokens=4):
        sizes.append(len(block))
        assert num_read == sum(sizes)
    assert sizes == [10, 10, 5]


def test_rows_are_made_once_and_then_mapped(tmp_path):
    path = tmp_path / "tokens" / "some.npy"
    blocks = [np.array([[1, 2], [3, 4]], np.uint16), np.array([[5, 6]], np.uint16)]

    def unmade() -> list[np.ndarray]:
        raise AssertionError("made again")

    first = load_or_make(path, lambda: blocks)
    again = load_or_make(path, unmade)

    for examples in (first, again):
        assert isinstance(examples.inputs, np.memmap)
        assert examples.inputs.tolist() == examples.labels.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert [file.name for file in path.parent.iterdir()] == ["some.npy"]


def test_the_file_is_an_ordinary_array_file_however_many_blocks_it_is_made_of(tmp_path):
    blocks = [np.full((7, 3), number, np.int32) for number in range(200)]

    load_or_make(tmp_path / "many.npy", lambda: iter(blocks))

    assert np.array_equal(np.load(tmp_path / "many.npy"), np.concatenate(blocks))


def test_an_interrupted_making_leaves_nothing(tmp_path):
    def blocks():
        yield np.zeros((2, 2), np.uint16)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load_or_make(tmp_path / "some.npy", blocks)
    assert list(tmp_path.iterdir()) == []


def test_no_sentences_are_an_error_and_leave_nothing(tmp_path):
    with pytest.raises(DataError, match="no sentences"):
        load_or_make(tmp_path / "some.npy", lambda: sentence_rows([], BYTES, 4))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"cut", b"\x93NUMPY\x01\x00v\x00{'descr"])
def test_a_kept_file_that_is_no_array_is_named(tmp_path, content):
    path = tmp_path / "some.npy"
    path.write_bytes(content)

    with pytest.raises(DataError, match="some.npy holds no whole array: .* Delete it") as caught:
        load_or_make(path, lambda: [])
    assert "\n" not in str(caught.value)
