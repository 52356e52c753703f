"""Data that is not whole: exit 2, and one clear line that names the file."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

CIFAR, IMAGES = "small:cifar_10/resnet_8/sgd", "small:imagenet/resnet_50/nesterov_momentum"
LM1B, CRAWL = "paper:lm1b/lstm/nesterov_momentum", "small:common_crawl/transformer_base/nesterov_momentum"


def write(path: str, content: bytes = b"") -> None:
    place = Path("data") / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)


def write_image(path: str) -> None:
    write(path)
    Image.new("RGB", (64, 64), (200, 100, 0)).save(Path("data") / path, "JPEG")


def truncated_tar() -> None:
    write("cifar-10-python.tar.gz", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03" + bytes(50))


def wrong_checksum() -> None:
    for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
        write(f"cifar-10-batches-py/{name}", b"not the published file")


def corrupt_picture() -> None:
    write("tiny-imagenet-200/wnids.txt", b"n01\nn02\n")
    for i in range(4):
        for wnid in ("n01", "n02"):
            write_image(f"tiny-imagenet-200/train/{wnid}/images/{wnid}_{i}.JPEG")
        write_image(f"tiny-imagenet-200/val/images/val_{i}.JPEG")
    write(
        "tiny-imagenet-200/val/val_annotations.txt", b"".join(b"val_%d.JPEG\tn01\t0\t0\t1\t1\n" % i for i in range(4))
    )
    write("tiny-imagenet-200/val/images/val_2.JPEG", b"\xff\xd8\xff\xe0 no picture")


def label_out_of_range() -> None:
    corrupt_picture()
    write_image("tiny-imagenet-200/val/images/val_2.JPEG")
    write(
        "tiny-imagenet-200/val/val_annotations.txt", b"".join(b"val_%d.JPEG\tn77\t0\t0\t1\t1\n" % i for i in range(4))
    )


def missing_shard() -> None:
    for number in range(1, 99):
        write(f"training-monolingual.tokenized.shuffled/news.en-{number:05}-of-00100", b"A sentence .\n")
    for number in range(50):
        write(f"heldout-monolingual.tokenized.shuffled/news.en.heldout-{number:05}-of-00050", b"A sentence .\n")


def empty_text() -> None:
    write("common_crawl/a.jsonl")


@pytest.mark.parametrize(
    ("spec", "spoil", "file"),
    [
        (CIFAR, truncated_tar, "cifar-10-python.tar.gz"),
        (CIFAR, wrong_checksum, "data_batch_1"),
        (IMAGES, corrupt_picture, "val_2.JPEG"),
        (IMAGES, label_out_of_range, "val_annotations.txt"),
        (LM1B, missing_shard, "news.en-00099-of-00100"),
        (CRAWL, empty_text, "a.jsonl"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_is_broken_is_named_in_one_line(call, spec, spoil, file):
    spoil()

    settings = ("--set", "workload.dataset={name='tiny_imagenet', image_size=32}") if spec == IMAGES else ()
    answer = call("run", spec, "--data", "data", "--workers", "1", *settings)

    assert answer.code == 2
    lines = [line for line in answer.err.splitlines() if line.startswith("batchlab:")]
    assert len(lines) == 1
    assert file in lines[0]
    assert "Traceback" not in answer.err
    assert not Path("lab/sweeps").exists() or not any(Path("lab/sweeps").iterdir())
