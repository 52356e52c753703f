"""Tars that make Python's reader hang, stop early or fill the memory: each is one line with the file's name."""

from __future__ import annotations

import gzip
import io
import tarfile
import time

import pytest

from batchlab.data import guarded_tar
from batchlab.data.stored_file import list_files, tar_members
from batchlab.data.tar_gz import read_members
from batchlab.errors import DataError

END = bytes(1024)


def header(name: str, size: bytes, kind: bytes = tarfile.REGTYPE) -> bytes:
    """Return a header with a size as it is written, right or wrong, and a sound checksum."""
    made = bytearray(tarfile.TarInfo(name).tobuf(tarfile.USTAR_FORMAT))
    made[124:136], made[156:157] = size.ljust(12, b"\0"), kind
    made[148:156] = b" " * 8
    made[148:156] = b"%06o\0 " % sum(made)
    return bytes(made)


def pax(*records: str) -> bytes:
    body = "".join(records).encode()
    return header("pax", b"%011o" % len(body), tarfile.XHDTYPE) + body.ljust(-(-len(body) // 512) * 512, b"\0")


def record(key: str, value: str) -> str:
    length = len(f" {key}={value}\n") + 2
    return f"{length} {key}={value}\n"


HOSTILE = {
    "a negative size": header("batch", b"\xff" * 12),
    "a negative size in attributes": pax(record("size", "-1024")) + header("batch", b"00000000000"),
    "exabytes": header("other", b"\x80" + b"\0" * 3 + b"\x7f" + b"\xff" * 7),
    "exabytes in attributes": pax(record("size", str(2**62))) + header("other", b"00000000000"),
    "gigabytes of a name": header("name", b"77777777777", tarfile.GNUTYPE_LONGNAME),
    "gigabytes of attributes": header("pax", b"77777777777", tarfile.XHDTYPE),
    "a file with holes": header("batch", b"00000000000", tarfile.GNUTYPE_SPARSE),
    "names of names of names": header("name", b"00000000000", tarfile.GNUTYPE_LONGNAME) * 3000,
    "a damaged header in the middle": header("other", b"00000000000") + b"\x01" * 512,
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_header_is_refused_at_once(tmp_path, case):
    content = HOSTILE[case] + END
    (tmp_path / "a.tar").write_bytes(content)
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(content))
    began = time.process_time()

    with pytest.raises(DataError, match=r"a\.tar: the tar is truncated or damaged"):
        list(tar_members(tmp_path / "a.tar"))
    with pytest.raises(DataError, match=r"a\.tar\.gz: the tar is truncated or damaged"):
        read_members(tmp_path / "a.tar.gz", ["batch"], 1000)

    assert time.process_time() - began < 20


def test_a_bomb_is_not_unpacked_to_its_end(tmp_path):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=1) as tar:
        info = tarfile.TarInfo("other")
        info.size = 100 << 20
        tar.addfile(info, io.BytesIO(bytes(info.size)))
    (tmp_path / "a.tar.gz").write_bytes(out.getvalue())

    with pytest.raises(DataError, match=r"a\.tar\.gz: .*more than 67,108,864"):
        read_members(tmp_path / "a.tar.gz", ["batch"], 1000)


def test_millions_of_tiny_members_come_to_an_end(tmp_path, monkeypatch):
    monkeypatch.setattr(guarded_tar, "MOST_MEMBERS", 50)
    (tmp_path / "a.tar").write_bytes(header("a", b"00000000000") * 51 + END)

    with pytest.raises(DataError, match="it has more than 50 members"):
        list(tar_members(tmp_path / "a.tar"))


def test_a_name_with_control_characters_is_escaped(tmp_path):
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(header("\x1b[31m/batch", b"00000000000", tarfile.SYMTYPE) + END))

    with pytest.raises(DataError, match=r"\\x1b\[31m/batch is no file") as caught:
        read_members(tmp_path / "a.tar.gz", ["batch"], 1000)

    assert str(caught.value).isprintable()


def test_folders_that_link_to_themselves_are_listed_once(tmp_path):
    (tmp_path / "tree" / "sub").mkdir(parents=True)
    (tmp_path / "tree" / "sub" / "a.jpg").touch()
    for name in ("one", "two", "three"):
        (tmp_path / "tree" / name).symlink_to(tmp_path / "tree")
        (tmp_path / "tree" / "sub" / name).symlink_to(tmp_path / "tree")

    assert [file.name for file in list_files(tmp_path / "tree")] == ["sub/a.jpg"]
