"""Sentences as arrays of tokens that are made once and then mapped into memory, however many there are.

Every sentence ends with END, so that a model must tell where it ends; one that is clipped has lost its END.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from batchlab.core.tokens import PADDING
from batchlab.data.base import Examples
from batchlab.data.kept import is_kept, set_seal
from batchlab.data.map_file import open_map
from batchlab.data.vocabulary import encode
from batchlab.errors import DataError
from batchlab.files import make_folder, whole_file

if TYPE_CHECKING:
    from tokenizers import Tokenizer

BATCH_SENTENCES = 4096
"""Sentences that are in memory at one time."""


def sentence_rows(sentences: Iterable[str], tokenizer: Tokenizer, num_tokens: int) -> Iterator[np.ndarray]:
    """Yield blocks [num_sentences, num_tokens]: each sentence clipped to its first tokens, or filled up."""
    for batch in _encoded(sentences, tokenizer):
        yield filled_up(batch, num_tokens, tokenizer.get_vocab_size())


def whole_sentence_rows(
    sentences: Iterable[str], tokenizer: Tokenizer, max_tokens: int | None = None
) -> Iterator[np.ndarray]:
    """Yield one block as wide as the longest sentence, or `max_tokens`: for splits that fit in memory."""
    encoded = [tokens for batch in _encoded(sentences, tokenizer) for tokens in batch]
    if encoded:
        longest = max(map(len, encoded))
        width = longest if max_tokens is None else min(longest, max_tokens)
        yield filled_up(encoded, width, tokenizer.get_vocab_size())


def piece_rows(sentences: Iterable[str], tokenizer: Tokenizer, num_tokens: int) -> Iterator[np.ndarray]:
    """Yield blocks of pieces: the sentences joined to one text that is cut every `num_tokens` tokens."""
    rest: list[int] = []
    for batch in _encoded(sentences, tokenizer):
        for tokens in batch:
            rest += tokens
        cut = len(rest) - len(rest) % num_tokens
        if cut:
            yield pieces(rest[:cut], num_tokens, tokenizer.get_vocab_size())
        rest = rest[cut:]
    if rest:
        yield pieces(rest, num_tokens, tokenizer.get_vocab_size())


def pieces(tokens: list[int], num_tokens: int, vocabulary_size: int) -> np.ndarray:
    """Return a text cut into rows of `num_tokens`; the last one is filled up.

    >>> pieces([5, 6, 7], 2, vocabulary_size=8)
    array([[5, 6],
           [7, 0]], dtype=uint16)
    """
    starts = range(0, len(tokens), num_tokens)
    return filled_up([tokens[start : start + num_tokens] for start in starts], num_tokens, vocabulary_size)


def filled_up(sentences: list[list[int]], num_tokens: int, vocabulary_size: int) -> np.ndarray:
    """Return the first `num_tokens` tokens of each sentence, [num_sentences, num_tokens], filled up with PADDING."""
    rows = np.full((len(sentences), num_tokens), PADDING, token_dtype(vocabulary_size))
    for row, tokens in zip(rows, sentences, strict=True):
        row[: len(tokens)] = tokens[:num_tokens]
    return rows


def token_dtype(vocabulary_size: int) -> np.dtype[np.uint16] | np.dtype[np.int32]:
    """Return the smallest kind of array that `Examples` takes and that holds every token."""
    return np.dtype(np.uint16) if vocabulary_size <= 1 << 16 else np.dtype(np.int32)


def load_or_make(path: Path, blocks: Callable[[], Iterable[np.ndarray]]) -> Examples:
    """Return the rows kept at `path`, mapped into memory; if there are none, make them from `blocks` and keep them."""
    if not is_kept(path):
        make(path, blocks())
    return load(path)


def make(path: Path, blocks: Iterable[np.ndarray]) -> None:
    """Keep the rows of all blocks at `path`, in place of what was there; only one block is in memory at a time.

    The file takes its place, whole, once `blocks` has come to its end.
    """
    make_folder(path.parent)
    with whole_file(path) as file:
        _write(file, blocks)
    set_seal(path)


def load(path: Path) -> Examples:
    """Return the rows kept at `path`, mapped into memory."""
    rows = open_map(path)
    try:
        return Examples(rows, rows)
    except ValueError as error:
        raise DataError(f"{path} holds no tokens: {error}. Delete it to have it made again.") from error


def _write(file: IO[bytes], blocks: Iterable[np.ndarray]) -> None:
    """Write blocks one after the other as one array; its header leaves room for any number of rows."""
    num_rows = 0
    for block in blocks:
        if num_rows == 0:
            _write_header(file, block, num_rows)
        file.write(np.ascontiguousarray(block).data)
        num_rows += len(block)
    if num_rows == 0:
        raise DataError("There are no sentences to encode. Give files with text.")
    file.seek(0)
    _write_header(file, block, num_rows)


def _write_header(file: IO[bytes], block: np.ndarray, num_rows: int) -> None:
    described = np.lib.format.dtype_to_descr(block.dtype)
    header = {"descr": described, "fortran_order": False, "shape": (num_rows, *block.shape[1:])}
    np.lib.format.write_array_header_1_0(file, header)


def _encoded(sentences: Iterable[str], tokenizer: Tokenizer) -> Iterator[list[list[int]]]:
    remaining = iter(sentences)
    while batch := list(islice(remaining, BATCH_SENTENCES)):
        yield encode(tokenizer, batch)
