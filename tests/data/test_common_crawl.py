from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from batchlab.core.tokens import END
from batchlab.data import common_crawl, token_cache, vocabulary
from batchlab.data.base import Dataset
from batchlab.data.files import Source
from batchlab.errors import DataError

SMALL = {"vocabulary_size": 259, "heldout_share": 0.25}
BYTES = vocabulary.train_vocabulary(["-"], 259)


def write(root: Path, name: str, *pages: str) -> None:
    """Write pages as JSON lines, or as a WET file, gzipped or not: as the name says."""
    path = root / "common_crawl" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if ".wet" in name:
        header = "WARC/1.0\r\nWARC-Type: conversion\r\nContent-Length: {}\r\n\r\n{}\r\n\r\n"
        content = "".join(header.format(len(page.encode()), page) for page in pages).encode()
    else:
        content = "".join(json.dumps({"text": page, "url": "-"}) + "\n" for page in pages).encode()
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)


def numbered(first: int, last: int) -> str:
    """A page with a sentence per line, and blank lines."""
    return "\n \n".join(f" sentence {number} " for number in range(first, last))


def texts(rows: np.ndarray) -> list[str]:
    return [vocabulary.decode(BYTES, row) for row in rows]


def load(root: Path, **options: float) -> Dataset:
    return common_crawl.load(SMALL | options, Source(root))


@pytest.fixture
def crawl(tmp_path: Path) -> Path:
    """A hundred sentences, in order, in files of every kind."""
    root = tmp_path / "data"
    write(root, "a.warc.wet", numbered(0, 10), numbered(10, 20))
    write(root, "b.warc.wet.gz", numbered(20, 40))
    write(root, "more/c.jsonl", numbered(40, 60), "\n", numbered(60, 70))
    write(root, "more/d.jsonl.gz", numbered(70, 80))
    write(root, "more/e.json.gz", numbered(80, 100))
    (root / "common_crawl" / "readme.txt").write_text("not read")
    return root


def test_the_published_numbers_are_the_facts():
    """Vocabulary, share, held-out sentences and clips: reference, sections 0.1 and 3.6."""
    assert common_crawl.COMMON_CRAWL.num_classes == 24_006
    assert (common_crawl.HELD_OUT_SHARE, common_crawl.HELD_OUT_SENTENCES) == (0.0002, 6_075)
    assert (common_crawl.COMMON_CRAWL.input_shape, common_crawl.HELD_OUT_TOKENS) == ((64,), 476)


def test_every_sentence_of_every_kind_of_file_is_in_one_split(crawl):
    loaded = load(crawl)
    train, val, test = (texts(split.inputs) for split in (loaded.train, loaded.val, loaded.test))

    assert sorted(train + val + test) == sorted(f"sentence {number}" for number in range(100))
    assert 10 <= len(val) + len(test) <= 40
    assert len(val) == (len(val) + len(test)) // 2
    for split in (train, val + test):
        assert split == sorted(split, key=lambda sentence: int(sentence.split()[1]))


def test_a_larger_share_holds_out_more_of_the_same_kind(crawl):
    few, many = load(crawl, heldout_share=0.1), load(crawl, heldout_share=0.5)
    held_out = [set(texts(loaded.val.inputs) + texts(loaded.test.inputs)) for loaded in (few, many)]

    assert held_out[0] < held_out[1]


def test_the_first_held_out_sentences_validate_the_next_test_and_the_rest_is_left_out(crawl, tmp_path, monkeypatch):
    everything = load(crawl, heldout_share=0.5)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another"))
    monkeypatch.setattr(common_crawl, "HELD_OUT_SENTENCES", 5)
    limited = load(crawl, heldout_share=0.5)

    held_out = texts(everything.val.inputs) + texts(everything.test.inputs)
    assert len(held_out) > 10
    assert (texts(limited.val.inputs), texts(limited.test.inputs)) == (held_out[:5], held_out[5:10])
    assert np.array_equal(limited.train.inputs, everything.train.inputs)


def test_training_sentences_are_clipped_at_64_and_held_out_ones_at_476(tmp_path):
    write(tmp_path, "a.jsonl", *["x" * 500] * 50)
    loaded = load(tmp_path)

    assert loaded.train.input_shape == (64,)
    assert loaded.val.input_shape == loaded.test.input_shape == (476,)
    assert END not in loaded.val.inputs


def test_a_second_load_learns_and_encodes_nothing(crawl, monkeypatch):
    first = load(crawl)

    def again(*arguments: object) -> None:
        raise AssertionError("done again")

    monkeypatch.setattr(vocabulary, "train_vocabulary", again)
    monkeypatch.setattr(token_cache, "encode", again)
    second = load(crawl)
    for split in ("train", "val", "test"):
        assert np.array_equal(getattr(first, split).inputs, getattr(second, split).inputs)


@pytest.mark.parametrize("lost", ["train", "val", "test"])
def test_a_making_that_was_stopped_between_the_splits_is_done_again(crawl, cache, lost):
    first = load(crawl)
    for path in (cache / "tokens").glob(f"common_crawl-{lost}*"):
        path.unlink()

    second = load(crawl)

    for split in ("train", "val", "test"):
        assert np.array_equal(getattr(first, split).inputs, getattr(second, split).inputs)


def test_training_rows_appear_after_those_of_the_other_splits(crawl, monkeypatch):
    """So that another process that finds the first finds all three."""
    appeared, replace = [], Path.replace

    def noted(path: Path, target: Path) -> Path:
        if "seals" not in target.parts:
            appeared.append(target.name.rpartition("-")[0])
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", noted)
    load(crawl)

    assert appeared == ["common_crawl", "common_crawl-val", "common_crawl-test", "common_crawl-train"]


@pytest.mark.parametrize("lost", ["train", "val", "test"])
def test_splits_that_are_there_stay_while_a_lost_one_is_made_again(crawl, cache, monkeypatch, lost):
    load(crawl)
    (path,) = (cache / "tokens").glob(f"common_crawl-{lost}*")
    path.unlink()
    there = sorted((cache / "tokens").iterdir())

    def watched(*arguments: object) -> None:
        assert there == [path for path in sorted((cache / "tokens").iterdir()) if path.suffix == ".npy"]
        raise KeyboardInterrupt

    monkeypatch.setattr(token_cache, "encode", watched)
    with pytest.raises(KeyboardInterrupt):
        load(crawl)
    assert there == sorted((cache / "tokens").iterdir())


def test_another_clip_makes_training_rows_alone(crawl, cache):
    load(crawl)
    loaded = load(crawl, num_tokens=5)

    assert loaded.train.input_shape == (5,)
    assert sorted(path.name.split("-")[1] for path in (cache / "tokens").iterdir()) == ["test", "train", "train", "val"]


def test_the_real_sample_of_c4_is_read(shared_data):
    loaded = common_crawl.load({"vocabulary_size": 400, "heldout_share": 0.05}, Source(shared_data))
    with gzip.open(shared_data / "c4-sample" / "c4-en-train-first1000.jsonl.gz", "rt", encoding="utf-8") as file:
        pages = [json.loads(line)["text"] for line in file]

    num_sentences = sum(1 for page in pages for line in page.split("\n") if line.strip())
    assert len(pages) == 1000
    assert len(loaded.train) + len(loaded.val) + len(loaded.test) == num_sentences
    assert 0.03 < (len(loaded.val) + len(loaded.test)) / num_sentences < 0.07
    assert loaded.val.inputs.max() < loaded.num_classes == 400


def test_a_share_that_holds_out_too_little_is_refused(crawl, cache):
    with pytest.raises(DataError, match=r"`heldout_share` = 0\.0002 holds out 0 sentences .* larger share"):
        load(crawl, heldout_share=common_crawl.HELD_OUT_SHARE)
    assert not list(cache.rglob("*.npy"))


def test_a_folder_without_text_is_named(tmp_path):
    (tmp_path / "common_crawl").mkdir()

    with pytest.raises(DataError, match="common_crawl holds no text: put"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("b.jsonl", b"", "is empty"),
        ("b.jsonl", b'{"text": "a"}\n{"text": \n', "line 2 is no JSON object with a field `text`"),
        ("b.jsonl", b'{"url": "a"}\n', "line 1 is no JSON object with a field `text`"),
        ("b.jsonl", b"[" * 100_000 + b"\n", "line 1 is no JSON object with a field `text`"),
        ("b.jsonl", b"[1]\n", "line 1 is no JSON object with a field `text`"),
        ("b.jsonl", b'{"text": 5}\n', "line 1 is no JSON object with a field `text` that holds valid text"),
        ("b.jsonl", b'{"text": "\\ud800"}\n', "line 1 is no JSON object with a field `text` that holds valid text"),
        ("b.jsonl", b'{"text": "\xff"}\n', "line 1: byte 10 is not valid UTF-8"),
        ("b.jsonl.gz", gzip.compress(b'{"text": "a"}\n', mtime=0)[:-5], "the gzip file is truncated"),
        ("b.wet", b"no record", "record 1 starts with"),
    ],
)
def test_a_broken_file_is_named(tmp_path, name, content, message):
    write(tmp_path, "a.jsonl", numbered(0, 100))
    (tmp_path / "common_crawl" / name).write_bytes(content)

    with pytest.raises(DataError, match=f"{name}.*{message}") as caught:
        load(tmp_path)
    assert "\n" not in str(caught.value)


def test_missing_files_are_asked_for(tmp_path, crawl):
    assert common_crawl.state(crawl) == "present"
    assert common_crawl.state(tmp_path) == "missing"
    with pytest.raises(DataError, match="The files of common_crawl are missing: put a folder common_crawl"):
        load(tmp_path)
