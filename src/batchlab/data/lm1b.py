"""lm1b: the One Billion Word benchmark, 30 million shuffled sentences of news; and lm1b_sample, a few of them.

lm1b is read from the official folders, or from the official archive (its text is unpacked into the cache folder while
tokens are made of it, and removed again). All 99 training shards train, in the order of their numbers; the held-out
file 0 of 50 validates and file 1 tests. Training sentences are clipped, those of the other splits never.

lm1b_sample is made of two files with held-out sentences of the same benchmark: the first 11,000 sentences of `dev`
train, its last 1,216 validate, and all of `test` test.
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from batchlab.data import files, token_cache
from batchlab.data.base import Dataset, DatasetFacts, Examples
from batchlab.data.cache_key import Origin, kept_path, origins_of
from batchlab.data.files import DataFile, DataState, Source, cache_dir
from batchlab.data.guarded_tar import members
from batchlab.data.reading_progress import ReadingProgress
from batchlab.data.tar_gz import open_tar_gz
from batchlab.data.text_lines import decode_lines, read_lines
from batchlab.data.vocabulary import fingerprint, load_or_train
from batchlab.errors import DataError
from batchlab.files import make_folder, temporary_folder, whole_file

_RELEASE = "1-billion-word-language-modeling-benchmark-r13output"
ARCHIVE = f"{_RELEASE}.tar.gz"
TRAIN_FOLDER = "training-monolingual.tokenized.shuffled"
HELD_OUT_FOLDER = "heldout-monolingual.tokenized.shuffled"
_FOLDERS = ("lm1b", f"lm1b/{_RELEASE}", _RELEASE)

_MOST_TEXT_BYTES = 1 << 34
"""Unpacked; the published text has 4.5 GB."""

TRAIN_SHARDS = tuple(f"{TRAIN_FOLDER}/news.en-{number:05d}-of-00100" for number in range(1, 100))
VAL_FILE = f"{HELD_OUT_FOLDER}/news.en.heldout-00000-of-00050"
TEST_FILE = f"{HELD_OUT_FOLDER}/news.en.heldout-00001-of-00050"

LM1B = DatasetFacts(
    name="lm1b",
    train_examples=30_301_028,
    val_examples=6_075,
    test_examples=6_206,
    input_shape=(64,),
    num_classes=32_000,
    metrics=("cross_entropy_error",),
    task="language_model",
    options=("train_examples", "vocabulary_size", "num_tokens"),
    source="Chelba et al., One Billion Word Benchmark, of the WMT 2011 news crawl;"
    " text for research, scripts Apache-2.0.",
    place=f"{ARCHIVE}, or its folders {TRAIN_FOLDER} and {HELD_OUT_FOLDER},",
)


def _sample_file(name: str, num_bytes: int, sha256: str) -> DataFile:
    return DataFile(name=name, folders=("lm1b-sample", "lm1b_sample"), num_bytes=num_bytes, sha256=sha256)


LM1B_SAMPLE = replace(
    LM1B,
    name="lm1b_sample",
    train_examples=11_000,
    val_examples=1_216,
    test_examples=12_105,
    num_classes=8_000,
    files=(
        _sample_file(
            "1b_benchmark.dev.tokens", 1_673_607, "17cb1e765cc0ccbf2b25d6dfd5e7d03bc776882e579e77ed9626d65eb3bbdec7"
        ),
        _sample_file(
            "1b_benchmark.test.tokens", 1_650_147, "63c566dee364763db09e6bb9abd83f77830c4932fc852bf2f9a563b527654fd0"
        ),
    ),
    place="",
)

Sentences = Callable[[], Iterable[str]]
"""Starts a reading of sentences from the first one."""


def state(data_dir: Path | None) -> DataState:
    """Return whether the folders or the archive of lm1b are there; only names are looked at."""
    return files.state_of_any((TRAIN_FOLDER, ARCHIVE), _FOLDERS, data_dir)


def load(options: Mapping[str, Any], source: Source, facts: DatasetFacts = LM1B) -> Dataset:
    """Return lm1b as tokens, memory maps of the cache folder; the numbers of sentences in `facts` are proven."""
    place = source.find_any((TRAIN_FOLDER, ARCHIVE), _FOLDERS)
    if place is None:
        raise files.missing(facts.name, facts.place)
    with ExitStack() as stack:
        text = cache(partial(_text_folder, place, stack))

        def read(names: Iterable[str], expected: int | None) -> Iterator[str]:
            return _proven_number(_sentences(text(), names, facts.name), expected, place)

        return encoded_splits(
            facts,
            options,
            _origins(place),
            train=lambda: read(TRAIN_SHARDS, facts.train_examples),
            val=lambda: read([VAL_FILE], facts.val_examples),
            test=lambda: read([TEST_FILE], facts.test_examples),
        )


def load_sample(options: Mapping[str, Any], source: Source) -> Dataset:
    """Return lm1b_sample as tokens, memory maps of the cache folder."""
    dev_file, test_file = LM1B_SAMPLE.files
    dev, test = (list(decode_lines(io.BytesIO(source.read(file)), str(file))) for file in (dev_file, test_file))
    return encoded_splits(
        LM1B_SAMPLE,
        options,
        [(file.sha256, file.num_bytes, 0) for file in LM1B_SAMPLE.files],
        train=lambda: dev[: LM1B_SAMPLE.train_examples],
        val=lambda: dev[LM1B_SAMPLE.train_examples :],
        test=lambda: test,
    )


def encoded_splits(
    facts: DatasetFacts,
    options: Mapping[str, Any],
    origins: list[Origin],
    train: Sentences,
    val: Sentences,
    test: Sentences,
) -> Dataset:
    """Return sentences as a dataset: the vocabulary learned from `train`, which alone is clipped."""
    assert facts.num_classes is not None
    size: int = options.get("vocabulary_size", facts.num_classes)
    num_tokens: int = options.get("num_tokens", facts.input_shape[0])
    tokenizer = load_or_train(facts.name, origins, size, train)

    def kept(split: str, blocks: Callable[[], Iterable[Any]], **settings: int) -> Examples:
        path = kept_path(
            "tokens", f"{facts.name}-{split}", ".npy", origins, vocabulary=fingerprint(tokenizer), **settings
        )
        return token_cache.load_or_make(path, blocks)

    return Dataset(
        name=facts.name,
        train=kept("train", lambda: token_cache.sentence_rows(train(), tokenizer, num_tokens), num_tokens=num_tokens),
        val=kept("val", lambda: token_cache.whole_sentence_rows(val(), tokenizer)),
        test=kept("test", lambda: token_cache.whole_sentence_rows(test(), tokenizer)),
        num_classes=size,
        task="language_model",
    )


def _origins(place: Path) -> list[Origin]:
    if place.name == ARCHIVE:
        return origins_of([place], place.parent)
    paths = [place.parent / name for name in (*TRAIN_SHARDS, VAL_FILE, TEST_FILE)]
    _check_all_there(paths, place)
    return origins_of(paths, place.parent)


def _check_all_there(paths: Iterable[Path], place: Path) -> None:
    lost = [path for path in paths if not path.is_file()]
    if lost:
        raise DataError(
            f"{lost[0].parent.name}/{lost[0].name} is missing beside or in {place} ({len(lost)} missing files in all)."
            " All 99 training shards and the held-out files 00000 and 00001 are needed."
        )


def _sentences(folder: Path, names: Iterable[str], dataset: str) -> Iterator[str]:
    paths = [folder / name for name in names]
    progress = ReadingProgress(f"{dataset}: reading sentences", sum(path.stat().st_size for path in paths))
    for path in paths:
        yield from read_lines(path, progress)


def _proven_number(sentences: Iterator[str], expected: int | None, place: Path) -> Iterator[str]:
    number = 0
    for number, sentence in enumerate(sentences, start=1):  # noqa: B007
        yield sentence
    if expected is not None and number != expected:
        raise DataError(f"{place}: a split has {number:,} sentences, not {expected:,}. Replace it with the original.")


def _text_folder(place: Path, stack: ExitStack) -> Path:
    """Return the folder with the official folders; that of an archive is removed when `stack` closes."""
    if place.name != ARCHIVE:
        return place.parent
    folder = stack.enter_context(temporary_folder(cache_dir() / "lm1b-text"))
    _unpack(place, folder)
    return folder


def _unpack(archive: Path, folder: Path) -> None:
    wanted = {Path(name) for name in (*TRAIN_SHARDS, VAL_FILE, TEST_FILE)}
    progress = ReadingProgress(f"{archive.name}: unpacking", archive.stat().st_size)
    with open_tar_gz(archive, _MOST_TEXT_BYTES, progress) as tar:
        for member in members(tar, _MOST_TEXT_BYTES):
            name = Path(*Path(member.name).parts[-2:])
            if name in wanted and member.isfile() and (content := tar.extractfile(member)):
                make_folder((folder / name).parent)
                with whole_file(folder / name, sync=False) as file:
                    shutil.copyfileobj(content, file)
    _check_all_there([folder / name for name in sorted(wanted)], archive)
