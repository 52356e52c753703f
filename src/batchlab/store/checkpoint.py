"""Checkpoints: the state of an unfinished pack in one safetensors file, with its study and a digest.

Arrays (weights, optimizer state, the rows so far) are tensors. In the header, under `batchlab`, stands a table of
JSON: numbers (the step, the seconds), the study, the digest of all of it, and what arrays are of which safetensors
knows no type. Before there were these, checkpoints were .npz files: they are read, and no longer written.
Neither can hold anything but numbers and text: no pickle is ever loaded.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from batchlab.files import is_there, make_folder, read_bounded, whole_file
from batchlab.store.seal import changed, damaged, digest

Checkpoint = Mapping[str, np.ndarray]
"""All that a pack needs to go on from, by name."""

SUFFIX = ".safetensors"
OLDER_SUFFIX = ".npz"
MOST_BYTES = 1 << 36
_STUDY, _DIGEST = "study", "digest"
_TABLE = "batchlab"
_TYPES = {
    **{"F64": np.float64, "F32": np.float32, "F16": np.float16, "BOOL": np.bool_},
    **{"I64": np.int64, "I32": np.int32, "I16": np.int16, "I8": np.int8},
    **{"U64": np.uint64, "U32": np.uint32, "U16": np.uint16, "U8": np.uint8},
}
_NUMBERS = {int: np.int64, float: np.float64}
_NAMES = {np.dtype(kind): name for name, kind in _TYPES.items()}


def write_checkpoint(path: Path, arrays: Checkpoint, study: str) -> None:
    """Write arrays to a file, whole; `study` is the fingerprint of the study that they belong to."""
    make_folder(path.parent)
    with whole_file(path) as file:
        for piece in _pieces(arrays, study):
            file.write(piece)


def read_checkpoint(path: Path, study: str | None = None) -> dict[str, np.ndarray] | None:
    """Return the arrays of a checkpoint; None where there is no file.

    DamagedError where they are not as they were written, or not of the study with the fingerprint `study`. With None,
    of a lab from before there were seals, they may be of any and lack the digest.
    """
    if not is_there(path):
        return None
    arrays = _load(path)
    found = str(arrays.pop(_DIGEST, ""))
    if (found or study is not None) and found != _digest(arrays):
        raise changed(path)
    if str(arrays.pop(_STUDY, "")) != str(study) and study is not None:
        raise damaged(path, "it is of another study")
    return arrays


def trials_of_checkpoint(checkpoint: Path) -> tuple[int, ...]:
    """Return the trials of the pack that left a checkpoint: each has a row, at the least of step 0."""
    arrays = read_checkpoint(checkpoint) or {}
    if "rows.trial_id" not in arrays:
        raise damaged(checkpoint, "it names no trials")
    return tuple(np.unique(arrays["rows.trial_id"]).tolist())


def _pieces(arrays: Checkpoint, study: str) -> Iterator[Any]:
    """Yield the bytes of a checkpoint, arrays as they lie in memory: the library would first copy all of them twice."""
    numbers = {name: array.item() for name, array in arrays.items() if _is_number(array)}
    tensors, foreign = {}, {}
    for name in sorted(arrays.keys() - numbers.keys(), key=lambda name: (-arrays[name].itemsize, name)):  # aligned so
        tensors[name], kind = _tensor(arrays[name])
        if kind is not None:
            foreign[name] = kind
    table = {
        "names": list(arrays),  # in their order, which is that of a table's columns
        "numbers": numbers,
        "foreign": foreign,
        _STUDY: study,
        _DIGEST: _digest({**arrays, _STUDY: np.array(study)}),
    }
    header: dict[str, Any] = {"__metadata__": {_TABLE: json.dumps(table)}}
    end = 0
    for name, tensor in tensors.items():
        start, end = end, end + tensor.nbytes
        header[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    yield len(text).to_bytes(8, "little") + text
    yield from map(_bytes, tensors.values())


def _is_number(array: np.ndarray) -> bool:
    """Return whether JSON holds a value as it is: a whole number or a fraction of Python's own kind."""
    return array.shape == () and (array.dtype == np.int64 or (array.dtype == np.float64 and math.isfinite(array)))


def _tensor(array: np.ndarray) -> tuple[np.ndarray, list[Any] | None]:
    """Return an array as safetensors can hold it: one of a type that it does not know as bytes, with type and shape."""
    if array.dtype.hasobject:
        raise ValueError(f"an array of {array.dtype} cannot be kept without pickle: keep numbers or text.")
    if array.dtype in _NAMES and array.dtype.isnative:
        return np.require(array, requirements="C"), None
    kind = [np.lib.format.dtype_to_descr(array.dtype), list(array.shape)]
    return np.frombuffer(array.tobytes(), np.uint8), kind


def _load(path: Path) -> dict[str, np.ndarray]:
    content = read_bounded(path, MOST_BYTES)
    try:
        return _unpacked_npz(content) if path.suffix == OLDER_SUFFIX else _unpacked(content)
    except Exception as error:  # whatever a damaged file makes three libraries raise, and that is much
        raise damaged(path, next(iter(str(error).splitlines()), type(error).__name__).rstrip(".")) from None


def _unpacked(content: bytes) -> dict[str, np.ndarray]:
    """Return the arrays of a checkpoint, and its study and digest as such."""
    from safetensors import deserialize

    arrays = {
        name: np.frombuffer(told["data"], _TYPES[told["dtype"]]).reshape(told["shape"])
        for name, told in deserialize(content)  # type: ignore[no-untyped-call]
    }
    size = int.from_bytes(content[:8], "little")
    table = json.loads(json.loads(content[8 : 8 + size])["__metadata__"][_TABLE])
    for name, (kind, shape) in table["foreign"].items():
        dtype = np.lib.format.descr_to_dtype(_as_descr(kind))
        if dtype.hasobject:
            raise ValueError(f"{name} is of {dtype}")
        arrays[name] = np.frombuffer(bytearray(arrays[name].tobytes()), dtype).reshape(shape)
    arrays |= {name: np.array(value, _NUMBERS[type(value)]) for name, value in table["numbers"].items()}
    if arrays.keys() != set(table["names"]):
        raise ValueError("it holds other arrays than it names")
    ordered = {name: arrays[name] for name in table["names"]}
    return {**ordered, _STUDY: np.array(table[_STUDY]), _DIGEST: np.array(table[_DIGEST])}


def _as_descr(kind: Any) -> Any:
    """Return the description of a type as NumPy writes it: JSON has made lists of its tuples."""
    if isinstance(kind, str):
        return kind
    return [(name, _as_descr(of), *map(tuple, shape)) for name, of, *shape in kind]


def _unpacked_npz(content: bytes) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays}


def _digest(arrays: Checkpoint) -> str:
    pieces: list[Any] = []
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        pieces += [f"\0{name}\0{array.dtype.str}\0{array.shape}\0".encode(), _bytes(array)]
    return digest(*pieces)


def _bytes(array: np.ndarray) -> Any:
    """Return the bytes of an array, without a copy where its type lets one."""
    return array.reshape(-1).view(np.uint8).data if array.dtype in _NAMES else array.tobytes()
