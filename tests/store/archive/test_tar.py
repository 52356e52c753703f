"""Tar headers are claims: what is absurd, damaged or cut is noticed before anything is made of it."""

from __future__ import annotations

import io
import tarfile

import pytest

from batchlab.errors import InputError
from batchlab.store.archive.streams import Stream
from batchlab.store.archive.tar import TarError, TarMember, TarReader

END = bytes(1024)


def header(name: str = "a", size: int | bytes = 0, kind: bytes = b"0") -> bytes:
    """One header, its size written as given, with a right checksum."""
    info = tarfile.TarInfo(name)
    info.type = kind
    block = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    block[124:136] = size if isinstance(size, bytes) else b"%011o\0" % size
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def member(content: bytes, name: str = "a", kind: bytes = b"0") -> bytes:
    return header(name, len(content), kind) + content + bytes(-len(content) % 512)


def attributes(key: str, value: str) -> bytes:
    length = len(f" {key}={value}\n") + 1
    while len(f"{length} {key}={value}\n") != length:
        length += 1
    return member(f"{length} {key}={value}\n".encode(), "PaxHeader", b"x")


def read(content: bytes) -> dict[str, bytes | None]:
    reader = TarReader(Stream(io.BytesIO(content)))
    return {each.name: None if each.is_folder else bytes(reader.content()) for each in reader}


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_what_tar_writes_is_read(form):
    """Long names, a name that is not ASCII where the format has a place for it, empty files and folders."""
    long = f"mnist/{'a' * 90}/{'b' * 90}/c.json"
    names = {
        long: b"x" * 1000,
        "small": b"1",
        "empty": b"",
        **({} if form == tarfile.USTAR_FORMAT else {"ü" * 200: b"2"}),
    }
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        folder = tarfile.TarInfo("folder")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for name, content in names.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(content), 1234.5
            archive.addfile(info, io.BytesIO(content))

    assert read(out.getvalue()) == {"folder/": None, **names}


def test_a_member_that_is_not_read_is_passed_over():
    reader = TarReader(Stream(io.BytesIO(member(b"x" * 700, "a") + member(b"y", "b") + END)))

    assert list(reader) == [TarMember("a", 700, False), TarMember("b", 1, False)]


def test_a_tar_cut_anywhere_is_noticed():
    """Between two members, too, where Python's own reader sees the end of a whole file."""
    whole = member(b"x" * 700, "a") + member(b"y", "b") + END
    for length in range(len(whole)):
        with pytest.raises(TarError):
            read(whole[:length])
    assert read(whole) == {"a": b"x" * 700, "b": b"y"}


def test_what_follows_the_end_is_noticed():
    assert read(member(b"y") + END + bytes(10240)) == {"a": b"y"}
    with pytest.raises(TarError, match="something follows the end"):
        read(member(b"y") + END + member(b"hidden") + END)
    with pytest.raises(TarError, match="zeros follow the end"):
        read(member(b"y") + END + bytes(1 << 25))
    with pytest.raises(TarError, match="within a block"):
        read(member(b"y") + END + bytes(100))


def test_a_lone_block_of_zeros_is_no_end():
    with pytest.raises(TarError, match="a lone block of zeros"):
        read(member(b"y") + bytes(512) + member(b"z") + END)


@pytest.mark.parametrize(
    "size", [b"\xff" * 12, b"-0000000010\0", b"zzzzzzzzzzz\0", b"0000000008\0\0", b"\xff" + b"\0" * 11]
)
def test_a_negative_or_absurd_size_is_noticed(size):
    """Of these Python's own reader goes back in the file and reads the same header for ever (CVE-2025-8194)."""
    with pytest.raises(TarError, match="negative or none at all"):
        read(header(size=size) + END)


@pytest.mark.parametrize("value", ["-512", "1e9", "", "9" * 5000, "0x10"])
def test_a_size_among_the_attributes_must_be_one(value):
    with pytest.raises(TarError, match="negative or none at all"):
        read(attributes("size", value) + member(b"y") + END)


def test_a_large_size_is_told_as_it_is():
    (found,) = [next(iter(TarReader(Stream(io.BytesIO(header(size=b"\x80" + b"\0" * 3 + b"\xff" * 8))))))]

    assert found.size == 2**64 - 1


@pytest.mark.parametrize("kind", [b"x", b"g", b"L", b"K"])
def test_header_members_of_gigabytes_are_refused_unread(kind):
    with pytest.raises(TarError, match="a header member of 5,368,709,120 bytes"):
        read(header(size=5 * 2**30, kind=kind))


def test_header_members_without_end_are_refused():
    with pytest.raises(TarError, match="more than 4 header members in a row"):
        read(attributes("comment", "x") * 100 + member(b"y") + END)


@pytest.mark.parametrize(
    "content", [b"0 path=a\n", b"-5 path=a\n", b"99 path=a\n", b"path=a\n", b"9 path a\n", b"9 path=a ", b"\xff" * 90]
)
def test_broken_attributes_are_noticed(content):
    with pytest.raises(TarError, match="attributes of a member cannot be read"):
        read(member(content, kind=b"x") + member(b"y") + END)


def test_one_name_for_all_members_is_refused():
    common = attributes("path", "same").replace(b"PaxHeader", b"pax_globl")
    block = bytearray(common)
    block[156:157] = b"g"
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block[:512])
    with pytest.raises(TarError, match="one name or size"):
        read(bytes(block) + member(b"y") + END)


def test_sparse_members_are_refused():
    with pytest.raises(TarError, match="sparse"):
        read(attributes("GNU.sparse.major", "1") + member(b"y") + END)
    with pytest.raises(InputError, match="unknown kind"):
        read(member(b"y", kind=b"S") + END)


@pytest.mark.parametrize("kind", [b"1", b"2", b"3", b"4", b"6", b"M", b"V", b"Z"])
def test_what_is_neither_file_nor_folder_is_refused(kind):
    with pytest.raises(InputError, match='"a" that is a link or a device, or of an unknown kind'):
        read(header(kind=kind) + END)


def test_a_wrong_checksum_is_noticed():
    damaged = bytearray(member(b"y") + END)
    damaged[3] ^= 1

    with pytest.raises(TarError, match="wrong checksum"):
        read(bytes(damaged))


def test_a_name_that_is_no_text_is_told_with_what_it_holds():
    block = bytearray(header())
    block[:3] = b"a\xffb"
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)

    assert list(read(bytes(block) + END)) == ["a\udcffb"]
