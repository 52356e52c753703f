from __future__ import annotations

import gzip

import numpy as np
import pytest

from batchlab.data.idx import read_images, read_labels
from batchlab.errors import DataError

# Two images of 2x3 pixels, and three labels, byte by byte.
IMAGES = bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 3]) + bytes(
    [0, 1, 2, 3, 4, 5, 250, 251, 252, 253, 254, 255]
)
LABELS = bytes([0, 0, 8, 1, 0, 0, 0, 3]) + bytes([9, 0, 4])


@pytest.mark.parametrize("content", [IMAGES, gzip.compress(IMAGES)], ids=["plain", "gzip"])
def test_images_are_read_row_by_row(content):
    images = read_images(content, "images")

    assert images.dtype == np.uint8
    assert images.tolist() == [[[0, 1, 2], [3, 4, 5]], [[250, 251, 252], [253, 254, 255]]]


@pytest.mark.parametrize("content", [LABELS, gzip.compress(LABELS)], ids=["plain", "gzip"])
def test_labels_are_read_as_int64(content):
    labels = read_labels(content, "labels", num_classes=10)

    assert labels.dtype == np.int64
    assert labels.tolist() == [9, 0, 4]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "starts with 0x, an idx file with 0x00000803"),
        (LABELS, "starts with 0x00000801, an idx file with 0x00000803"),
        (b"\x00\x00\x0d\x03" + IMAGES[4:], "starts with 0x00000d03"),
        (b"<html>", "starts with 0x3c68746d"),
        (IMAGES[:15], "header ends after 15 of 16 bytes"),
        (IMAGES[:-1], r"11 bytes follow the header, its sizes \[2, 2, 3\] need 12"),
        (IMAGES + b"\x00", r"13 bytes follow the header, its sizes \[2, 2, 3\] need 12"),
        (IMAGES[:4] + b"\xff" * 12 + IMAGES[16:], "12 bytes follow the header"),
        (gzip.compress(IMAGES[:-1], mtime=0), "11 bytes follow the header"),
    ],
    ids=["empty", "labels", "floats", "text", "cut header", "short", "long", "huge sizes", "short in gzip"],
)
def test_what_is_no_image_file_is_refused_by_name(content, message):
    with pytest.raises(DataError, match=f"some-images: .*{message}"):
        read_images(content, "some-images")


def test_every_truncation_of_a_gzip_file_is_refused_by_name():
    packed = gzip.compress(LABELS)

    for length in range(len(packed)):
        with pytest.raises(DataError, match=r"^some-labels: "):
            read_labels(packed[:length], "some-labels", num_classes=10)


def test_a_damaged_gzip_file_is_refused_by_name():
    packed = bytearray(gzip.compress(LABELS))
    packed[-5] ^= 0xFF  # in the checksum of the content

    with pytest.raises(DataError, match="some-labels: the gzip file is truncated or damaged"):
        read_labels(bytes(packed), "some-labels", num_classes=10)


def test_a_label_outside_the_classes_is_refused_by_place():
    with pytest.raises(DataError, match="some-labels: label 9 of example 0 is not in 0 to 8"):
        read_labels(LABELS, "some-labels", num_classes=9)


def test_a_bomb_is_not_unpacked_to_its_end(monkeypatch):
    monkeypatch.setattr("batchlab.data.idx.MOST_BYTES", 1000)

    with pytest.raises(DataError, match="bomb: it unpacks to more than 1,000 bytes"):
        read_images(gzip.compress(bytes(2000)), "bomb")
