"""Sub-word vocabularies: learned once from training sentences by byte pair encoding, then kept as JSON.

Every byte is a token, so every text can be encoded and comes back exactly as it was. Three tokens stand for no text:
PADDING, START and END of `core.tokens`; a sentence that happens to hold their names is encoded like any other text.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from batchlab.core.tokens import END, PADDING, START
from batchlab.data.cache_key import Origin, kept_path
from batchlab.data.kept import check_seal, is_kept, set_seal
from batchlab.errors import DataError, shown
from batchlab.files import read_bounded, write_file

if TYPE_CHECKING:
    from tokenizers import Tokenizer

NUM_SPECIAL = 3
SMALLEST_SIZE = 256 + NUM_SPECIAL
"""Every byte and the special tokens; what is larger holds merged pairs as well."""

MOST_SENTENCES = 1_000_000
"""A vocabulary is learned from the first this many training sentences: more change little and take long."""

MOST_BYTES = 1 << 27
"""Of a kept vocabulary; one of a million tokens has 60 MB."""

_SPECIAL = {PADDING: "<padding>", START: "<start>", END: "<end>"}
_THREADS_VARIABLE = "TOKENIZERS_PARALLELISM"
_LONG_BYTES = 50_000_000


def train_vocabulary(sentences: Iterable[str], size: int) -> Tokenizer:
    """Return a vocabulary of `size` tokens, learned from the first MOST_SENTENCES; the same for the same sentences.

    Of little text it may be smaller: merging ends where no pair is left. Tokens are below `size` all the same.
    """
    if size < SMALLEST_SIZE:
        raise ValueError(f"a vocabulary of {size} tokens: give at least {SMALLEST_SIZE}, for every byte has its token")
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=1,
        show_progress=False,
        special_tokens=[_SPECIAL[token] for token in range(NUM_SPECIAL)],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )
    with _one_thread():
        tokenizer.train_from_iterator(islice(sentences, MOST_SENTENCES), trainer)
    return _ready(tokenizer)


def load_or_train(
    name: str, origins: Sequence[Origin], size: int, sentences: Callable[[], Iterable[str]], **settings: int | float
) -> Tokenizer:
    """Return the vocabulary kept for these files, size and settings; if there is none, learn and keep it.

    `sentences` is called only where it is learned; `settings` are what else decides which sentences those are.
    """
    path = kept_path(
        "vocabularies", name, ".json", origins, size=size, most_sentences=MOST_SENTENCES, kind="byte pairs", **settings
    )
    if is_kept(path):
        return _load(path)
    if sum(num_bytes for _, num_bytes, _ in origins) > _LONG_BYTES:
        print(f"{name}: learning a vocabulary of {size:,} tokens takes minutes; it is kept.", file=sys.stderr)
    tokenizer = train_vocabulary(sentences(), size)
    write_file(path, tokenizer.to_str().encode())
    set_seal(path)
    return tokenizer


def encode(tokenizer: Tokenizer, sentences: Sequence[str]) -> list[list[int]]:
    """Return the tokens of each sentence, ended by END."""
    with _one_thread():
        return [[*found.ids, END] for found in tokenizer.encode_batch_fast(sentences, add_special_tokens=False)]


def decode(tokenizer: Tokenizer, tokens: Iterable[int]) -> str:
    """Return the text of `tokens`; PADDING, START and END are left out."""
    text: str = tokenizer.decode([int(token) for token in tokens if token >= NUM_SPECIAL])
    return text


def fingerprint(tokenizer: Tokenizer) -> str:
    """Return a short text that changes with the vocabulary."""
    return hashlib.sha256(tokenizer.to_str().encode()).hexdigest()[:16]


def _load(path: Path) -> Tokenizer:
    from tokenizers import Tokenizer

    try:
        tokenizer = _ready(Tokenizer.from_str(read_bounded(path, MOST_BYTES, DataError).decode("utf-8")))
    except Exception as error:  # the library raises plain Exception for JSON that is no vocabulary
        raise DataError(f"{path} is no vocabulary: {shown(str(error))}. Delete it to have it learned again.") from error
    check_seal(path)
    return tokenizer


def _ready(tokenizer: Tokenizer) -> Tokenizer:
    """Return the tokenizer, told to take the special tokens' names in a sentence for plain text; that is not kept."""
    tokenizer.encode_special_tokens = True
    return tokenizer


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let the library use one thread, unless the user says otherwise; it warns of its threads when a process forks."""
    if _THREADS_VARIABLE in os.environ:
        yield
        return
    os.environ[_THREADS_VARIABLE] = "false"
    try:
        yield
    finally:
        os.environ.pop(_THREADS_VARIABLE, None)
