"""Archives that are damaged on their way: exit code 2, one line, nothing listed and no lab made."""

from __future__ import annotations

import gzip
import json
import struct
import tarfile
from pathlib import Path

import pytest
import xxhash

WORKLOAD = "mnist/simple_cnn_base/sgd"


@pytest.fixture
def archive(quiet_place) -> bytes:
    """A tar file of one study with three trials."""
    folder = Path("batch_science") / WORKLOAD / "16"
    for trial in range(3):
        (folder / str(trial)).mkdir(parents=True)
        facts = {"parameters": {"learning_rate": 0.1}, "status": "COMPLETE", "steps": 30, "trial_id": trial}
        (folder / str(trial) / "metadata.json").write_text(json.dumps(facts))
        (folder / str(trial) / "measurements.csv").write_text("step,val/classification_error\n0,0.9\n30,0.1\n")
    study = {"batch_size": 16, "early_stopping": False, "parameter_configs": {}, "train_steps": 30}
    (folder / "study.json").write_text(json.dumps(study))
    with tarfile.open("whole.tar", "w") as tar:
        tar.add("batch_science")
    return Path("whole.tar").read_bytes()


@pytest.fixture
def refused_archive(refused):
    """Return a function that imports bytes which must be refused; returns the line."""

    def run(content: bytes) -> str:
        Path("sent.tar").write_bytes(content)
        line = refused("import", "sent.tar", "--workers", "1")
        assert not Path("lab").exists()
        return line

    return run


def zstd(content: bytes) -> bytes:
    """A zstd frame of uncompressed blocks with a checksum, by the format's description (RFC 8878)."""
    blocks = [content[i : i + 30_000] for i in range(0, len(content), 30_000)]
    heads = (struct.pack("<I", (number == len(blocks) - 1) | len(b) << 3)[:3] for number, b in enumerate(blocks))
    body = b"".join(head + block for head, block in zip(heads, blocks, strict=True))
    return b"\x28\xb5\x2f\xfd\x04\x58" + body + struct.pack("<I", xxhash.xxh64_intdigest(content) & 0xFFFFFFFF)


def stored(content: bytes) -> bytes:
    """A gzip stream that is not compressed: there no bit is without effect, as one may be in a match within zeros."""
    return gzip.compress(content, 0)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd])
def test_a_whole_archive_is_imported(call, archive, pack):
    Path("sent.tar").write_bytes(pack(archive))

    assert call("import", "sent.tar", "--workers", "1").code == 0


def test_a_tar_cut_at_a_header_is_refused(archive, refused_archive):
    """There Python's own reader sees the end of a whole file."""
    with tarfile.open("whole.tar") as tar:
        headers = [member.offset for member in tar][1:]

    for place in headers:
        assert "damaged or cut short" in refused_archive(archive[:place])


def test_a_tar_cut_within_a_member_is_refused(archive, refused_archive):
    for place in (100, 700, len(archive) // 2 + 77):
        assert "damaged or cut short" in refused_archive(archive[:place])


def test_a_tar_without_its_end_is_refused(archive, refused_archive):
    assert "damaged or cut short" in refused_archive(archive.rstrip(b"\0") + bytes(512))


def test_a_wrong_gzip_checksum_is_refused(archive, refused_archive):
    """All members can be read: only the last eight bytes tell."""
    packed = bytearray(gzip.compress(archive))
    packed[-8] ^= 1

    assert "damaged or cut short" in refused_archive(bytes(packed))


def test_a_wrong_zstd_checksum_is_refused(archive, refused_archive):
    packed = bytearray(zstd(archive))
    packed[-1] ^= 1

    assert "damaged or cut short" in refused_archive(bytes(packed))


@pytest.mark.parametrize("pack", [stored, zstd])
def test_a_flipped_bit_in_a_stream_with_a_checksum_is_refused(archive, refused_archive, pack):
    packed = pack(archive)
    for place in range(30, len(packed), len(packed) // 10):
        assert refused_archive(packed[:place] + bytes([packed[place] ^ 4]) + packed[place + 1 :])


def test_a_flipped_bit_in_a_bare_tar_is_found_by_the_manifest_of_an_export(call, archive, refused_archive):
    """Of a bare tar without one nobody can tell; docs/reliability.md says so."""
    call("import", "whole.tar", "--workers", "1", "--lab", "first")
    assert call("export", "out", "--lab", "first").code == 0
    with tarfile.open("export.tar", "w") as tar:
        tar.add("out")
    content = Path("export.tar").read_bytes()
    assert content.count(b"30,0.1") == 3

    assert "does not fit its manifest" in refused_archive(content.replace(b"30,0.1", b"30,0.5", 1))


def test_an_archive_from_which_nothing_came_ends_with_2_and_leaves_no_lab(archive, refused):
    (Path("batch_science") / WORKLOAD / "16" / "study.json").write_text("{")

    assert "Nothing can be imported" in refused("import", "batch_science", "--workers", "1")
