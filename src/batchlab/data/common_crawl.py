"""common_crawl: sentences of web pages, from files of extracted text (WET) or JSON lines with a field `text`.

A sentence is a line of a page that is not blank, without the blanks around it. One pass over all files, sorted by name,
puts each sentence by a random draw into training or, with 0.02 % probability, among the held-out ones (option
`heldout_share`: a sample needs more). The first 6,075 held-out sentences validate, the next 6,075 test, the rest is
left out; of fewer than 12,150 the first half validates and the others test. Training sentences are clipped to 64
tokens, the others to 476.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from batchlab.core.seeds import Stream, generator
from batchlab.data import files, token_cache, wet
from batchlab.data.base import SPLIT_KEY, Dataset, DatasetFacts
from batchlab.data.cache_key import kept_path, origins_of
from batchlab.data.files import DataState, Source
from batchlab.data.kept import is_kept
from batchlab.data.reading_progress import ReadingProgress
from batchlab.data.text_lines import Told, read_lines
from batchlab.data.vocabulary import fingerprint, load_or_train
from batchlab.errors import DataError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

COMMON_CRAWL = DatasetFacts(
    name="common_crawl",
    input_shape=(64,),
    num_classes=24_006,
    metrics=("cross_entropy_error",),
    task="language_model",
    options=("train_examples", "vocabulary_size", "num_tokens", "heldout_share"),
    source="Common Crawl, web pages under its terms of use; or C4 made of them (Raffel et al. 2020), ODC-BY 1.0.",
    place="a folder common_crawl (or c4-sample) with *.warc.wet, *.jsonl or *.json.gz files, gzipped or not,",
)

HELD_OUT_SHARE = 0.0002
HELD_OUT_SENTENCES = 6_075
"""As many validate, and at most as many test: the number of sentences that validate in lm1b."""

HELD_OUT_TOKENS = 476
_FOLDERS = ("common_crawl", "c4-sample")
_WET_ENDS = (".wet", ".wet.gz")
_JSON_ENDS = (".jsonl", ".jsonl.gz", ".json.gz")


def state(data_dir: Path | None) -> DataState:
    """Return whether a folder of web pages is there; only its name is looked at."""
    return files.state_of_any(_FOLDERS, (), data_dir)


def load(options: Mapping[str, Any], source: Source) -> Dataset:
    """Return all sentences below the folder as tokens, memory maps of the cache folder."""
    folder = source.find_any(_FOLDERS, ())
    if folder is None:
        raise files.missing(COMMON_CRAWL.name, COMMON_CRAWL.place)
    return _Crawl(folder, options).dataset()


class _Crawl:
    """The files below one folder, and the options that decide what becomes of them."""

    def __init__(self, folder: Path, options: Mapping[str, Any]) -> None:
        self.paths = _text_files(folder)
        self.origins = origins_of(self.paths, folder)
        self.size: int = options.get("vocabulary_size", COMMON_CRAWL.num_classes)
        self.num_tokens: int = options.get("num_tokens", COMMON_CRAWL.input_shape[0])
        self.share: float = options.get("heldout_share", HELD_OUT_SHARE)

    def dataset(self) -> Dataset:
        """Return the dataset, made where it is not kept."""
        tokenizer = load_or_train(
            "common_crawl", self.origins, self.size, lambda: self.training([]), heldout_share=self.share
        )
        vocabulary = fingerprint(tokenizer)
        train_path = self._kept("train", vocabulary, num_tokens=self.num_tokens)
        held_out_paths = self._kept("val", vocabulary), self._kept("test", vocabulary)
        paths = (train_path, *held_out_paths)
        if not all(is_kept(path) for path in paths):
            token_cache.make(train_path, self._blocks(tokenizer, *held_out_paths))
        train, val, test = map(token_cache.load, paths)
        return Dataset("common_crawl", train, val, test, self.size, "language_model")

    def _blocks(self, tokenizer: Tokenizer, val_path: Path, test_path: Path) -> Iterator[np.ndarray]:
        """Yield the training rows, then keep those of the other splits: who finds the first finds all."""
        held_out: list[str] = []
        yield from token_cache.sentence_rows(self.training(held_out), tokenizer, self.num_tokens)
        half = min(HELD_OUT_SENTENCES, len(held_out) // 2)
        for path, sentences in ((val_path, held_out[:half]), (test_path, held_out[half:])):
            token_cache.make(path, token_cache.whole_sentence_rows(sentences, tokenizer, HELD_OUT_TOKENS))

    def training(self, held_out: list[str]) -> Iterator[str]:
        """Yield the training sentences; as many held-out ones as are used are put into `held_out`."""
        draws = generator(0, Stream.SUBSET, SPLIT_KEY)
        for sentence in self._sentences():
            if draws.random() >= self.share:
                yield sentence
            elif len(held_out) < 2 * HELD_OUT_SENTENCES:
                held_out.append(sentence)
        if len(held_out) < 2:
            raise DataError(
                f"common_crawl: `heldout_share` = {self.share} holds out {len(held_out)} sentences of the"
                f" {len(self.paths)} files in {self.paths[0].parent}. Give a larger share, or more files."
            )

    def _sentences(self) -> Iterator[str]:
        progress = ReadingProgress(
            "common_crawl: reading sentences", sum(num_bytes for _, num_bytes, _ in self.origins)
        )
        for path in self.paths:
            for page in _pages(path, progress):
                yield from filter(None, map(str.strip, page.split("\n")))

    def _kept(self, split: str, vocabulary: str, **settings: int) -> Path:
        return kept_path(
            "tokens",
            f"common_crawl-{split}",
            ".npy",
            self.origins,
            vocabulary=vocabulary,
            heldout_share=self.share,
            **settings,
        )


def _text_files(folder: Path) -> Sequence[Path]:
    found = sorted(
        path for path in folder.rglob("*") if path.name.endswith((*_WET_ENDS, *_JSON_ENDS)) and path.is_file()
    )
    if not found:
        raise DataError(f"{folder} holds no text: put *.warc.wet, *.jsonl or *.json.gz files into it, gzipped or not.")
    return found


def _pages(path: Path, told: Told) -> Iterator[str]:
    """Yield the text of every page in a file."""
    if path.name.endswith(_WET_ENDS):
        return wet.read_pages(path, told)
    return _json_pages(path, told)


def _json_pages(path: Path, told: Told) -> Iterator[str]:
    for number, line in enumerate(read_lines(path, told), start=1):
        try:
            text = json.loads(line)["text"]
            text.encode("utf-8")  # JSON can name half characters, which are no text
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise DataError(
                f"{path}, line {number} is no JSON object with a field `text` that holds valid text. Replace the file."
            ) from error
        yield text
