from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from batchlab.core.tokens import END, PADDING
from batchlab.data import lm1b, token_cache, vocabulary
from batchlab.data.base import Dataset
from batchlab.data.files import Source
from batchlab.errors import DataError

LONG = "very " * 99 + "long"
SMALL = {"vocabulary_size": 259}
FACTS = replace(lm1b.LM1B, train_examples=100, val_examples=2, test_examples=1)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The official layout with one sentence in each training shard, and one more in the last."""
    root = tmp_path / "data"
    sentences = {name: f"shard {number}\n" for number, name in enumerate(lm1b.TRAIN_SHARDS, start=1)}
    sentences[lm1b.TRAIN_SHARDS[-1]] += LONG + "\n"
    sentences |= {lm1b.VAL_FILE: f"first\n{LONG}\n", lm1b.TEST_FILE: "a test\n"}
    for name, text in sentences.items():
        path = root / "lm1b" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.fixture
def archive(tree: Path, tmp_path: Path) -> Path:
    """The same in the official archive, in an order that is not that of the numbers."""
    path = tmp_path / "packed" / lm1b.ARCHIVE
    path.parent.mkdir()
    with tarfile.open(path, "w:gz") as tar:
        for name in reversed((*lm1b.TRAIN_SHARDS, lm1b.VAL_FILE, lm1b.TEST_FILE)):
            tar.add(tree / "lm1b" / name, f"{lm1b.ARCHIVE.removesuffix('.tar.gz')}/{name}")
    return path


def load(root: Path, **options: int) -> Dataset:
    return lm1b.load(SMALL | options, Source(root), FACTS)


def texts(rows: np.ndarray) -> list[str]:
    """The sentences, read with a vocabulary of single bytes."""
    tokenizer = vocabulary.train_vocabulary(["-"], 259)
    return [vocabulary.decode(tokenizer, row) for row in rows]


def test_the_published_numbers_are_the_facts():
    """Numbers of sentences, sub-words and clipped tokens: reference, sections 0.1 and 3.5."""
    facts = lm1b.LM1B

    assert (facts.train_examples, facts.val_examples, facts.test_examples) == (30_301_028, 6_075, 6_206)
    assert (facts.num_classes, facts.input_shape, facts.task) == (32_000, (64,), "language_model")
    assert len(lm1b.TRAIN_SHARDS) == 99
    assert [Path(lm1b.TRAIN_SHARDS[end]).name for end in (0, -1)] == [
        "news.en-00001-of-00100",
        "news.en-00099-of-00100",
    ]


def test_all_shards_train_in_the_order_of_their_numbers_and_the_first_held_out_files_validate_and_test(tree):
    loaded = load(tree)

    assert texts(loaded.train.inputs[:99]) == [f"shard {number}" for number in range(1, 100)]
    assert texts(loaded.val.inputs) == ["first", LONG]
    assert texts(loaded.test.inputs) == ["a test"]
    assert (loaded.task, loaded.num_classes) == ("language_model", 259)


def test_training_sentences_are_clipped_and_the_others_are_not(tree):
    loaded = load(tree)

    assert loaded.train.inputs.shape == (100, 64)
    assert texts(loaded.train.inputs[99:]) == [LONG[:64]] and END not in loaded.train.inputs[99]
    assert loaded.val.inputs.shape == (2, len(LONG) + 1)
    assert loaded.val.inputs[1, -1] == END
    assert loaded.val.inputs[0, 5:].tolist() == [END, *[PADDING] * (len(LONG) - 5)]


def test_the_training_clip_is_an_option(tree):
    loaded = load(tree, num_tokens=10)

    assert loaded.train.inputs.shape == (100, 10) and loaded.input_shape == (10,)
    assert loaded.val.inputs.shape == (2, len(LONG) + 1)


def test_the_archive_gives_the_same_examples_and_its_text_is_not_kept(tree, archive, cache):
    from_folder, from_archive = load(tree), load(archive.parent)

    for split in ("train", "val", "test"):
        assert np.array_equal(getattr(from_folder, split).inputs, getattr(from_archive, split).inputs)
    assert sorted(path.name for path in cache.iterdir()) == ["tokens", "vocabularies"]


@pytest.mark.parametrize("place", ["tree", "archive"])
def test_a_second_load_learns_encodes_and_unpacks_nothing(place, request, monkeypatch):
    found = request.getfixturevalue(place)
    root = found if place == "tree" else found.parent
    first = load(root)

    def again(*arguments: object) -> None:
        raise AssertionError("done again")

    monkeypatch.setattr(vocabulary, "train_vocabulary", again)
    monkeypatch.setattr(token_cache, "encode", again)
    monkeypatch.setattr(lm1b, "_unpack", again)
    assert np.array_equal(load(root).train.inputs, first.train.inputs)


def test_changed_files_are_encoded_again(tree):
    load(tree)
    (tree / "lm1b" / lm1b.TEST_FILE).write_text("another test\n")

    assert texts(load(tree).test.inputs) == ["another test"]


@pytest.mark.parametrize("name", [lm1b.TRAIN_SHARDS[41], lm1b.VAL_FILE])
def test_a_missing_file_is_named(tree, name):
    (tree / "lm1b" / name).unlink()

    with pytest.raises(DataError, match=f"^{name} is missing"):
        load(tree)


def test_a_file_missing_in_the_archive_is_named(tree, tmp_path):
    with tarfile.open(tmp_path / lm1b.ARCHIVE, "w:gz") as tar:
        tar.add(tree / "lm1b" / lm1b.TRAIN_FOLDER, lm1b.TRAIN_FOLDER)

    with pytest.raises(DataError, match=f"^{lm1b.VAL_FILE} is missing .*{lm1b.ARCHIVE}"):
        load(tmp_path)


def test_a_shard_that_was_cut_is_noticed_by_the_number_of_sentences(tree, cache):
    (tree / "lm1b" / lm1b.TRAIN_SHARDS[-1]).write_text("shard 99\n")

    with pytest.raises(DataError, match="a split has 99 sentences, not 100"):
        load(tree)
    assert not list(cache.rglob("*train*"))


@pytest.mark.parametrize(
    ("content", "message"), [(b"", "is empty"), (b"ok\n\xff\n", "line 2: byte 0 is not valid UTF-8")]
)
def test_a_broken_shard_is_named(tree, content, message):
    name = lm1b.TRAIN_SHARDS[6]
    (tree / "lm1b" / name).write_bytes(content)

    with pytest.raises(DataError, match=f"{name}.*{message}"):
        load(tree)


def test_a_truncated_archive_is_named(archive, cache):
    os.truncate(archive, archive.stat().st_size // 2)

    with pytest.raises(DataError, match=f"{lm1b.ARCHIVE}: .*truncated or damaged"):
        load(archive.parent)
    assert list(cache.iterdir()) == []


def test_an_archive_in_which_one_letter_changed_is_named(archive, cache):
    """Not compressed: a changed letter stays a letter, and only the checksum at the end can tell."""
    content = gzip.decompress(archive.read_bytes())
    packed = gzip.compress(content, compresslevel=0)
    archive.write_bytes(packed.replace(b"shard 42\n", b"shard 43\n"))

    with pytest.raises(DataError, match=f"^\\S+{lm1b.ARCHIVE}: the gzip file is truncated or damaged") as caught:
        load(archive.parent)
    assert "\n" not in str(caught.value)
    assert list(cache.iterdir()) == []


def test_an_archive_that_turns_out_damaged_while_text_is_written_is_no_full_disk(tree, archive):
    """Packed in two parts: the checksum of the first is met in the middle of the long shard."""
    (tree / "lm1b" / lm1b.TRAIN_SHARDS[0]).write_text("long " * 20_000)
    with tarfile.open(archive, "w:gz", compresslevel=0) as tar:
        tar.add(tree / "lm1b" / lm1b.TRAIN_SHARDS[0], lm1b.TRAIN_SHARDS[0])
    content = gzip.decompress(archive.read_bytes())
    first = gzip.compress(content[:50_000], compresslevel=0).replace(b"long", b"lung", 1)
    archive.write_bytes(first + gzip.compress(content[50_000:]))

    with pytest.raises(DataError, match=f"{lm1b.ARCHIVE}: the gzip file is truncated or damaged"):
        load(archive.parent)


def test_text_that_a_killed_process_unpacked_is_removed(archive, cache):
    script = "import os; from pathlib import Path; from batchlab.files import temporary_folder\n"
    script += (
        f"with temporary_folder(Path({str(cache / 'lm1b-text')!r})) as folder: (folder / 'a').touch(); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
    (left,) = cache.iterdir()

    load(archive.parent)

    assert left.name.startswith("lm1b-text.")
    assert sorted(path.name for path in cache.iterdir()) == ["tokens", "vocabularies"]


def test_an_archive_that_is_none_is_named(tmp_path):
    (tmp_path / lm1b.ARCHIVE).write_bytes(gzip.compress(b"no archive" * 100))

    with pytest.raises(DataError, match=f"{lm1b.ARCHIVE}: the tar is truncated or damaged"):
        load(tmp_path)


def test_missing_files_are_asked_for(tmp_path):
    assert lm1b.state(tmp_path) == "missing"
    with pytest.raises(DataError, match="The files of lm1b are missing: put 1-billion-word.* --data DIR"):
        load(tmp_path)


def test_files_are_found_by_name(tree, archive):
    assert lm1b.state(tree) == lm1b.state(tree / "lm1b") == lm1b.state(archive.parent) == "present"


def test_the_sample_is_split_as_its_facts_say(shared_data):
    loaded = lm1b.load_sample({"vocabulary_size": 300}, Source(shared_data))
    lines = (shared_data / "lm1b-sample" / "1b_benchmark.dev.tokens").read_text("utf-8").split("\n")

    facts = lm1b.LM1B_SAMPLE
    assert (len(loaded.train), len(loaded.val), len(loaded.test)) == (11_000, 1_216, 12_105)
    assert (facts.train_examples, facts.val_examples, facts.test_examples) == (11_000, 1_216, 12_105)
    assert loaded.train.inputs.shape == (11_000, 64) and loaded.num_classes == 300
    assert np.count_nonzero(loaded.val.inputs == END) == 1_216 and np.count_nonzero(loaded.test.inputs == END) == 12_105
    assert np.count_nonzero(loaded.train.inputs == END) < 11_000
    tokenizer = vocabulary.load_or_train(
        "lm1b_sample",
        [(file.sha256, file.num_bytes, 0) for file in facts.files],
        300,
        lambda: pytest.fail("learned again"),
    )
    assert [vocabulary.decode(tokenizer, row) for row in loaded.val.inputs] == lines[11_000:12_216]


def test_a_sample_that_was_changed_is_refused(shared_data, tmp_path):
    shutil.copytree(shared_data / "lm1b-sample", tmp_path / "lm1b-sample", copy_function=shutil.copyfile)
    os.truncate(tmp_path / "lm1b-sample" / "1b_benchmark.test.tokens", 0)

    with pytest.raises(DataError, match="test.tokens is not the published"):
        lm1b.load_sample(SMALL, Source(tmp_path))
