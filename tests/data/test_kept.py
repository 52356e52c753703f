"""What lies in the cache folder is noticed when it is damaged."""

from __future__ import annotations

import os

import numpy as np
import pytest

from batchlab.data import kept, token_cache
from batchlab.data.files import cache_dir
from batchlab.data.vocabulary import load_or_train
from batchlab.errors import DataError


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return cache_dir()


def blocks():
    return [np.arange(4_000, dtype=np.uint16).reshape(1_000, 4)]


def flip(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def test_a_flipped_bit_in_kept_tokens_is_noticed_and_they_can_be_made_again(cache):
    path = cache / "tokens" / "some.npy"
    made = token_cache.load_or_make(path, blocks)
    assert np.array_equal(token_cache.load_or_make(path, blocks).inputs, made.inputs)
    flip(path, -3)

    with pytest.raises(DataError, match=r"some\.npy is damaged: it is not as it was made\. Delete it"):
        token_cache.load_or_make(path, blocks)
    path.unlink()

    assert np.array_equal(token_cache.load_or_make(path, blocks).inputs, blocks()[0])


def test_a_vocabulary_with_another_letter_is_noticed(cache):
    load_or_train("pets", [("a", 1, 0)], 280, lambda: ["the cat", "the dog"])
    (path,) = (cache / "vocabularies").iterdir()
    path.write_text(path.read_text().replace("<end>", "<and>"))

    with pytest.raises(DataError, match="is damaged"):
        load_or_train("pets", [("a", 1, 0)], 280, lambda: ["the cat", "the dog"])


def test_what_was_kept_before_there_were_seals_is_read_and_sealed(cache):
    path = cache / "tokens" / "some.npy"
    token_cache.make(path, blocks())
    seal = cache.parent / "seals" / "tokens" / "some.npy.json"
    seal.unlink()

    token_cache.load(path)
    flip(path, -1)

    with pytest.raises(DataError, match="is damaged"):
        token_cache.load(path)


@pytest.mark.parametrize("seal", [b"", b"{", b"[" * 100_000, b"9" * 5000, b"null", b"\xff"])
def test_a_damaged_seal_is_like_no_file(cache, seal):
    path = cache / "tokens" / "some.npy"
    token_cache.make(path, blocks())
    (cache.parent / "seals" / "tokens" / "some.npy.json").write_bytes(seal)

    with pytest.raises(DataError, match="is damaged"):
        token_cache.load(path)


def test_a_pipe_in_the_cache_folder_is_not_waited_for(cache):
    (cache / "tokens").mkdir(parents=True)
    os.mkfifo(cache / "tokens" / "some.npy")

    with pytest.raises(DataError, match=r"some\.npy is no regular file\. Delete it"):
        token_cache.load_or_make(cache / "tokens" / "some.npy", blocks)


def test_of_a_large_file_blocks_all_over_it_are_looked_at(cache, monkeypatch):
    monkeypatch.setattr(kept, "MOST_HASHED_BYTES", 1 << 20)
    path = cache / "tokens" / "some.npy"
    token_cache.make(path, [np.zeros((1 << 20, 4), np.uint16)])
    flip(path, 4 << 20)

    with pytest.raises(DataError, match="is damaged"):
        token_cache.load(path)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04" + bytes(50), b"\x93NUMPY\x01\x00\xff\xff{", b"\x80\x04N."])
def test_a_map_that_is_none_is_named(tmp_path, content):
    (tmp_path / "some.npy").write_bytes(content)

    with pytest.raises(DataError, match=r"some\.npy holds .*Delete it"):
        token_cache.load(tmp_path / "some.npy")
