from __future__ import annotations

import io
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from batchlab.data import image_cache
from batchlab.data.image_cache import decode, load_images
from batchlab.data.stored_file import list_files
from batchlab.errors import BatchlabError, DataError, StorageError


def jpeg(image: Image.Image, form: str = "JPEG") -> bytes:
    packed = io.BytesIO()
    image.save(packed, form, quality=95)
    return packed.getvalue()


def solid(colour, size=(8, 8), mode="RGB") -> bytes:
    return jpeg(Image.new(mode, size, colour))


def fill(folder: Path, num_images: int) -> None:
    folder.mkdir(exist_ok=True)
    for number in range(num_images):
        (folder / f"{number:03}.jpg").write_bytes(solid((number, 100, 200)))


@pytest.mark.parametrize(("size", "outer"), [((30, 10), "sides"), ((10, 30), "top and bottom")])
def test_the_shorter_side_is_resized_and_the_middle_is_kept(size, outer):
    """A red square in a blue band: the middle 10 pixels, and the 2 beside them that the filter reaches, are red."""
    image = Image.new("RGB", size, (0, 0, 255))
    image.paste((255, 0, 0), ((size[0] - 14) // 2, (size[1] - 14) // 2, (size[0] + 14) // 2, (size[1] + 14) // 2))

    decoded = decode(jpeg(image, "PNG"), 5, outer)

    assert decoded.shape == (5, 5, 3) and decoded.dtype == np.uint8
    assert np.all(decoded == [255, 0, 0])


def test_cutting_the_middle_is_the_same_before_and_after_resizing():
    noise = np.random.default_rng(0).integers(0, 256, (12, 20, 3), np.uint8)
    resized = Image.fromarray(noise).resize((10, 6), Image.Resampling.BILINEAR)

    decoded = decode(jpeg(Image.fromarray(noise), "PNG"), 6, "noise")

    assert np.array_equal(decoded, np.asarray(resized)[:, 2:8])


def test_halving_takes_the_mean_of_neighbours():
    """A bilinear filter over twice the distance weighs 4 pixels as 1, 3, 3, 1 inside; at an edge 3, 3, 1."""
    row = np.array([0, 0, 80, 80], np.uint8)
    image = Image.fromarray(np.tile(row[None, :, None], (4, 1, 3)))

    decoded = decode(jpeg(image, "PNG"), 2, "ramp")

    assert decoded[0, :, 0].tolist() == [round(80 / 7), round(80 * 6 / 7)]


@pytest.mark.parametrize(
    ("mode", "colour", "form", "expected"),
    [
        ("L", 90, "JPEG", (90, 90, 90)),
        ("CMYK", (0, 255, 255, 0), "JPEG", (255, 0, 0)),
        ("P", 0, "PNG", (0, 0, 0)),
        ("RGBA", (10, 20, 30, 255), "PNG", (10, 20, 30)),
    ],
)
def test_grey_cmyk_and_palette_images_become_rgb(mode, colour, form, expected):
    decoded = decode(jpeg(Image.new(mode, (8, 8), colour), form), 4, mode)

    assert np.abs(decoded.astype(int) - expected).max() <= 2


def test_pixels_of_more_than_8_bits_are_refused():
    ramp = Image.fromarray(np.linspace(0, 65_535, 64, dtype=np.uint16).reshape(8, 8))

    with pytest.raises(DataError, match=r"deep: the image cannot be decoded \(pixels of more than 8 bits, mode I"):
        decode(jpeg(ramp, "PNG"), 4, "deep")


@pytest.mark.parametrize("content", [b"", b"no image", solid((1, 2, 3), (64, 64))[:400]])
def test_a_corrupt_image_is_one_line_by_name(tmp_path, content):
    fill(tmp_path / "images", 3)
    (tmp_path / "images" / "001.jpg").write_bytes(content)

    with pytest.raises(DataError, match=r"^\S+/001\.jpg: the image cannot be decoded \(.*\)\. Replace .*\.$") as raised:
        load_images("three", list_files(tmp_path / "images"), 4)
    assert "\n" not in str(raised.value)


def test_nothing_is_kept_when_an_image_is_corrupt(tmp_path, cache):
    fill(tmp_path / "images", 3)
    (tmp_path / "images" / "002.jpg").write_bytes(b"cut")

    with pytest.raises(DataError):
        load_images("three", list_files(tmp_path / "images"), 4)
    assert list((cache / "images").iterdir()) == []


def test_images_keep_their_order_in_a_read_only_map(tmp_path, cache):
    fill(tmp_path / "images", 20)

    images = load_images("twenty", list_files(tmp_path / "images"), 4)

    assert isinstance(images, np.memmap) and not images.flags.writeable
    assert images.shape == (20, 4, 4, 3) and images.dtype == np.uint8
    assert np.abs(images[:, 0, 0, 0] - np.arange(20.0)).max() <= 2
    assert [path.name[:7] for path in (cache / "images").iterdir()] == ["twenty-"]


def test_the_second_load_decodes_nothing(tmp_path, monkeypatch):
    fill(tmp_path / "images", 3)
    first = load_images("three", list_files(tmp_path / "images"), 4)
    monkeypatch.setattr(image_cache, "decode", lambda *_: pytest.fail("decoded again"))

    assert np.array_equal(first, load_images("three", list_files(tmp_path / "images"), 4))


def test_another_side_or_other_files_have_a_map_of_their_own(tmp_path, cache):
    fill(tmp_path / "images", 3)
    sources = list_files(tmp_path / "images")

    load_images("three", sources, 4)
    load_images("three", sources, 5)
    load_images("three", sources[:2], 4)
    load_images("three", sources[::-1], 4)

    assert len(list((cache / "images").iterdir())) == 4


def test_a_file_that_was_changed_is_decoded_again_though_it_is_as_long(tmp_path):
    fill(tmp_path / "images", 1)
    path = tmp_path / "images" / "000.jpg"
    contents = [jpeg(Image.new("RGB", (8, 8), (grey,) * 3), "BMP") for grey in (10, 200)]
    found = []
    for number, content in enumerate(contents):
        path.write_bytes(content)
        os.utime(path, ns=(number, number))
        found.append(load_images("one", list_files(path.parent), 4)[0, 0, 0, 0])

    assert len(contents[0]) == len(contents[1])
    assert found == [10, 200]


def test_processes_write_what_one_process_writes(tmp_path, cache, monkeypatch):
    fill(tmp_path / "images", 10)
    sources = list_files(tmp_path / "images")
    monkeypatch.setattr(image_cache, "CHUNK_IMAGES", 4)

    alone = np.array(load_images("ten", sources, 4, num_workers=1))
    for path in (cache / "images").iterdir():
        path.unlink()

    assert np.array_equal(alone, load_images("ten", sources, 4, num_workers=2))


def test_a_corrupt_image_in_another_process_is_the_same_line(tmp_path, monkeypatch):
    fill(tmp_path / "images", 5)
    (tmp_path / "images" / "004.jpg").write_bytes(b"cut")
    monkeypatch.setattr(image_cache, "CHUNK_IMAGES", 3)

    with pytest.raises(DataError, match=r"^\S+/004\.jpg: the image cannot be decoded"):
        load_images("five", list_files(tmp_path / "images"), 4, num_workers=2)


def test_a_process_that_is_killed_leaves_one_line_and_nothing_else(cache, monkeypatch):
    sources = [SimpleNamespace(origin=(name, 1, 0), num_bytes=1, read=partial(os._exit, 3)) for name in "ab"]
    monkeypatch.setattr(image_cache, "CHUNK_IMAGES", 1)

    with pytest.raises(BatchlabError, match=r"^A process of this command was killed[^\n]*Run it again[^\n]*$"):
        load_images("two", sources, 4, num_workers=2)

    assert list((cache / "images").iterdir()) == []


def test_a_cache_that_cannot_be_written_is_a_storage_error(tmp_path, cache):
    fill(tmp_path / "images", 2)
    cache.mkdir(parents=True)
    (cache / "images").write_bytes(b"in the way")

    with pytest.raises(StorageError, match=f"Could not write {cache}{os.sep}images"):
        load_images("two", list_files(tmp_path / "images"), 4)


def test_only_formats_of_photographs_are_read(monkeypatch):
    """Pillow would give an EPS to another program."""
    monkeypatch.setattr("PIL.EpsImagePlugin.Ghostscript", lambda *_, **__: pytest.fail("started a program"))
    eps = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n%%EOF\n"

    with pytest.raises(DataError, match=r"^a\.JPEG: the image cannot be decoded \(the format is not known\)"):
        decode(eps, 4, "a.JPEG")


@pytest.mark.parametrize("form", ["JPEG", "PNG", "GIF", "BMP", "WEBP"])
def test_photographs_are_read_whatever_their_name(form):
    decoded = decode(jpeg(Image.new("RGB", (8, 8), (200, 200, 200)), form), 4, "a.JPEG")

    assert np.abs(decoded.astype(int) - 200).max() <= 2


def test_a_map_that_was_cut_is_named(tmp_path, cache):
    fill(tmp_path / "images", 3)
    load_images("three", list_files(tmp_path / "images"), 4)
    (path,) = (cache / "images").iterdir()
    os.truncate(path, path.stat().st_size - 1)

    with pytest.raises(DataError, match=rf"^{path} holds no whole array: .* Delete it to have it made again\.$"):
        load_images("three", list_files(tmp_path / "images"), 4)


def test_what_a_killed_process_left_is_removed(tmp_path, cache, monkeypatch):
    """The process is killed in the middle: its file would stay for ever."""
    fill(tmp_path / "images", 3)
    script = "import os, sys; from pathlib import Path; from batchlab.data import image_cache, stored_file\n"
    script += "image_cache.decode = lambda *_: os._exit(0)\n"
    script += f"image_cache.load_images('three', stored_file.list_files(Path({str(tmp_path / 'images')!r})), 4)"
    subprocess.run([sys.executable, "-c", script], check=True)
    (left,) = (cache / "images").iterdir()

    load_images("three", list_files(tmp_path / "images"), 4)

    assert left.suffix == ".tmp"
    assert [path.suffix for path in (cache / "images").iterdir()] == [".npy"]


def header_of(width: int, height: int) -> bytes:
    """Return a JPEG file that announces so many pixels and has none."""
    frame = b"\xff\xc0\x00\x11\x08" + height.to_bytes(2, "big") + width.to_bytes(2, "big")
    return b"\xff\xd8" + frame + b"\x03\x01\x22\x00\x02\x11\x01\x03\x11\x01\xff\xd9"


@pytest.mark.parametrize("side", [65_000, 12_000, 8_000])
def test_a_header_of_too_many_pixels_is_refused_before_there_is_room_for_them(side):
    with pytest.raises(DataError, match=r"^big\.jpg: the image cannot be decoded \(.*pixels.*\)"):
        decode(header_of(side, side), 64, "big.jpg")
