"""Compressed streams are read to their very end: whatever is wrong with one is noticed."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct

import pytest
import xxhash

from batchlab.store.archive.streams import BROKEN, Stream

TEXT = b"".join(b"%d,0.%d\n" % (i, i * i) for i in range(8_000))


def zstd(content: bytes) -> bytes:
    """A zstd frame of uncompressed blocks with a checksum, by the format's description (RFC 8878)."""
    out = b"\x28\xb5\x2f\xfd" + b"\x04" + b"\x58"  # a checksum; a window of 2 MB
    blocks = [content[i : i + 30_000] for i in range(0, len(content), 30_000)]
    for number, block in enumerate(blocks):
        out += struct.pack("<I", (number == len(blocks) - 1) | len(block) << 3)[:3] + block
    return out + struct.pack("<I", xxhash.xxh64_intdigest(content) & 0xFFFFFFFF)


PACKERS = {"plain": bytes, "gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zstd": zstd}
packed = pytest.mark.parametrize("kind", ["gz", "bz2", "xz", "zstd"])


def read(content: bytes, size: int = 1000) -> bytes:
    stream, pieces = Stream(io.BytesIO(content)), []
    while piece := stream.read(size):
        pieces.append(bytes(piece))
    return b"".join(pieces)


@pytest.mark.parametrize("kind", PACKERS)
@pytest.mark.parametrize("size", [1, 512, 300_000, 10_000_000])
def test_all_of_it_comes_back_whatever_the_pieces(kind, size):
    text = TEXT[:2000] if size == 1 else TEXT

    assert read(PACKERS[kind](text), size) == text


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz"])
def test_one_stream_after_the_other_is_one(kind):
    assert read(PACKERS[kind](TEXT) + PACKERS[kind](b"more")) == TEXT + b"more"


@packed
@pytest.mark.parametrize("lost", [1, 4, 8, 100])
def test_a_stream_that_was_cut_is_noticed(kind, lost):
    with pytest.raises(BROKEN):
        read(PACKERS[kind](TEXT)[:-lost])


@packed
def test_a_flipped_bit_is_noticed_wherever_it_is(kind):
    content = PACKERS[kind](TEXT)
    for place in range(20, len(content), len(content) // 40):
        damaged = bytearray(content)
        damaged[place] ^= 16
        with pytest.raises(BROKEN):
            read(bytes(damaged))


@packed
@pytest.mark.parametrize("garbage", [b"x", b"garbage", b"BZh9 no stream", b"\x1f\x8b", b"\0\0\0x"])
def test_what_follows_a_stream_is_noticed(kind, garbage):
    with pytest.raises(BROKEN):
        read(PACKERS[kind](TEXT) + garbage)


@pytest.mark.parametrize("kind", ["gz", "xz"])
def test_zeros_may_follow_where_the_format_allows_it(kind):
    assert read(PACKERS[kind](TEXT) + bytes(512)) == TEXT


def test_bytes_can_be_looked_at_before_they_are_read_or_passed_over():
    stream = Stream(io.BytesIO(b"abcdef"))

    assert (stream.peek(2), stream.read(3), stream.skip(2), stream.peek(9), stream.skip(2)) == (
        b"ab",
        b"abc",
        True,
        b"f",
        False,
    )
