from __future__ import annotations

import gzip
import io
import tarfile

import pytest

from batchlab.data.tar_gz import read_members
from batchlab.errors import DataError


def tar_of(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for member, content in members:
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def plain(name: str, content: bytes) -> tuple[tarfile.TarInfo, bytes]:
    return tarfile.TarInfo(name), content


def special(name: str, kind: bytes) -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, "elsewhere"
    return member, b""


GOOD = tar_of(plain("folder/a", b"first"), plain("b", b"second"), plain("c", b"third"))


def test_members_are_found_in_any_folder_and_those_not_there_are_left_out(tmp_path):
    (tmp_path / "some.tar.gz").write_bytes(gzip.compress(GOOD))

    assert read_members(tmp_path / "some.tar.gz", ["a", "c", "d"], 10) == {"a": b"first", "c": b"third"}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no archive",
        gzip.compress(b"no archive" * 100),
        gzip.compress(GOOD)[:-4],
        gzip.compress(GOOD)[:60],
        gzip.compress(GOOD[:600]),
        gzip.compress(GOOD)[:40] + b"\xff" * 40 + gzip.compress(GOOD)[80:],
        gzip.compress(GOOD, compresslevel=0).replace(b"first", b"fIrst"),
        gzip.compress(GOOD, compresslevel=0).replace(b"third", b"thIrd"),
    ],
    ids=["empty", "no gzip", "no tar", "no end", "half", "half a member", "garbled", "a letter", "a letter in another"],
)
def test_damage_anywhere_is_one_line_that_names_the_file(tmp_path, content):
    (tmp_path / "some.tar.gz").write_bytes(content)

    with pytest.raises(DataError, match=r"^\S+/some\.tar\.gz: the \w+( file)? is truncated or damaged") as caught:
        read_members(tmp_path / "some.tar.gz", ["a"], 10)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "member",
    [
        special("x/b", tarfile.SYMTYPE),
        special("x/b", tarfile.LNKTYPE),
        special("x/b", tarfile.DIRTYPE),
        special("x/b", tarfile.FIFOTYPE),
        plain("x/b", b"more than ten"),
    ],
    ids=["symbolic link", "hard link", "folder", "pipe", "too long"],
)
def test_what_is_no_file_of_a_sane_size_is_refused_by_name(tmp_path, member):
    (tmp_path / "some.tar.gz").write_bytes(gzip.compress(tar_of(plain("a", b"first"), member)))

    with pytest.raises(DataError, match=r"^\S+/some\.tar\.gz: x/b is no file of at most 10 bytes\. Replace"):
        read_members(tmp_path / "some.tar.gz", ["a", "b"], 10)
