"""Images decoded once: squares of bytes in a memory map below the cache folder.

The shorter side of an image is resized to the side of the square and the middle is kept. Grey, CMYK and palette
images become RGB. The map's name holds a hash of the side and of the names, sizes and times of the files, so that
other files have another map; it is written to a temporary name and renamed, so that it is whole or absent.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from batchlab.data.base import ImageView
from batchlab.data.cache_key import kept_path
from batchlab.data.kept import is_kept, set_seal
from batchlab.data.map_file import open_map, whole_map
from batchlab.data.reading_progress import ReadingProgress
from batchlab.data.stored_file import StoredFile
from batchlab.errors import DataError, shown
from batchlab.pool import Pool
from batchlab.processes import usable_cores

CHUNK_IMAGES = 256
MOST_PIXELS = 60_000_000
"""Of one image; decoded it has up to eight bytes for each."""

_FORMATS = ("JPEG", "PNG", "GIF", "BMP", "WEBP")  # of photographs; to read EPS, say, would start another program


def load_images(name: str, sources: Sequence[StoredFile], side: int, num_workers: int | None = None) -> np.ndarray:
    """Return the images as a read-only memory map, [num_images, side, side, 3] uint8, in the order of `sources`.

    The first call decodes them, in `num_workers` processes (by default one for each core) where there are many; every
    later one opens the map. DataError names the file that is no image.
    """
    path = kept_path("images", name, ".npy", (source.origin for source in sources), side=side)
    if not is_kept(path):
        with whole_map(path, (len(sources), side, side, 3)) as (temporary, offset):
            chunks = [
                (temporary, offset + start * side * side * 3, sources[start : start + CHUNK_IMAGES], side)
                for start in range(0, len(sources), CHUNK_IMAGES)
            ]
            progress = ReadingProgress(
                f"{name}: decoding {len(sources):,} images", sum(source.num_bytes for source in sources)
            )
            for num_bytes in _decode_all(chunks, num_workers or usable_cores()):
                progress(num_bytes)
        set_seal(path)
    return open_map(path, (len(sources), side, side, 3))


def stored_side(image_size: int) -> int:
    """Return the side at which images are kept, so that a square of `image_size` can be cut at random.

    >>> stored_side(224), stored_side(64)
    (256, 74)
    """
    return -(-image_size * 8 // 7)


def colour_view(image_size: int) -> ImageView:
    """Return how photographs are viewed: scaled by the mean and deviation of ImageNet's colours."""
    return ImageView(size=image_size, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))


def decode(content: bytes, side: int, source: str) -> np.ndarray:
    """Return one image as [side, side, 3] uint8: shorter side resized to `side`, then the middle."""
    from PIL import Image, UnidentifiedImageError

    try:
        with _no_bombs(), Image.open(io.BytesIO(content), formats=_FORMATS) as opened:
            if opened.width * opened.height > MOST_PIXELS:
                raise ValueError(f"{opened.width:,} x {opened.height:,} pixels are too many")
            if opened.mode[0] in "IF":  # to make bytes of them, the library cuts what is above 255
                raise ValueError(f"pixels of more than 8 bits, mode {opened.mode}: save it with 8")
            # A palette may hold transparency, which only RGBA can express.
            image = (opened.convert("RGBA") if opened.mode == "P" else opened).convert("RGB")
    except Exception as error:  # decoders raise whatever they trip over
        reason = "the format is not known" if isinstance(error, UnidentifiedImageError) else shown(str(error))
        raise DataError(f"{source}: the image cannot be decoded ({reason}). Replace the file, or remove it.") from error
    width, height = image.size
    shorter = min(width, height)
    left, top = (width - shorter) / 2, (height - shorter) / 2
    # Resizing only the middle square is the same as resizing all and cutting, and less work.
    box = (left, top, left + shorter, top + shorter)
    return np.asarray(image.resize((side, side), Image.Resampling.BILINEAR, box=box))


@contextmanager
def _no_bombs() -> Iterator[None]:
    """Have the library refuse what it otherwise warns of."""
    from PIL import Image

    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        yield


_Chunk = tuple[Path, int, Sequence[StoredFile], int]
"""The map's file, where the first image goes, the images, their side."""


def _decode_chunk(chunk: _Chunk) -> int:
    path, position, sources, side = chunk
    with path.open("r+b") as file:
        file.seek(position)
        for source in sources:
            file.write(decode(source.read(), side, str(source)).tobytes())
    return sum(source.num_bytes for source in sources)


def _decode_all(chunks: Sequence[_Chunk], num_workers: int) -> Iterator[int]:
    """Yield the number of bytes of each chunk as it is done; one chunk is not worth a process."""
    with Pool(max(1, min(num_workers, len(chunks)))) as pool:
        yield from pool.results((_decode_chunk, (chunk,)) for chunk in chunks)
