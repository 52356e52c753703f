from __future__ import annotations

import errno
import hashlib
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from batchlab.data import files
from batchlab.data.files import DataFile
from batchlab.errors import DataError, StorageError

CONTENT = b"eleven byte"
SUM = hashlib.sha256(CONTENT).hexdigest()


def data_file(*urls: str) -> DataFile:
    return DataFile(name="a.bin", folders=("some-set", "some_set"), num_bytes=11, sha256=SUM, urls=urls)


def put(path: Path, content: bytes = CONTENT) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def offline(url: str, max_bytes: int) -> bytes:
    raise OSError("no network")


def everything_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


PAGES = {"/good": CONTENT, "/short": CONTENT[:-1], "/long": CONTENT + b"!", "/wrong": CONTENT[::-1]}


class Site(BaseHTTPRequestHandler):
    """Serves `good`, too short, too long and wrong content, and an answer that breaks off."""

    def do_GET(self) -> None:
        if self.path == "/broken":
            self.wfile.write(b"no http\r\n\r\n")
        elif self.path in PAGES:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(PAGES[self.path])
        else:
            self.send_error(404)

    def log_message(self, format: str, *args: object) -> None:
        """Keep the test output clean."""


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """The address of a web server on this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")


# Where files are found


def test_places_are_the_given_folder_then_the_variable_then_the_cache(tmp_path, monkeypatch, cache):
    monkeypatch.setenv("BATCHLAB_DATA", str(tmp_path / "variable"))

    expected = [
        tmp_path / "given" / "some-set" / "a.bin",
        tmp_path / "given" / "some_set" / "a.bin",
        tmp_path / "given" / "a.bin",
        tmp_path / "variable" / "some-set" / "a.bin",
        tmp_path / "variable" / "some_set" / "a.bin",
        tmp_path / "variable" / "a.bin",
        cache / "some-set" / "a.bin",
    ]
    assert files.places(data_file(), tmp_path / "given") == expected


def test_the_cache_is_below_the_home_folder_by_default(monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/ada")

    assert files.cache_dir() == Path("/home/ada/.cache/batchlab/data")


@pytest.mark.parametrize("place", ["some-set/a.bin", "some_set/a.bin", "a.bin"])
@pytest.mark.parametrize("given_as", ["argument", "variable"])
def test_a_file_is_read_from_each_place_of_a_data_folder(tmp_path, monkeypatch, place, given_as):
    put(tmp_path / "data" / place)
    if given_as == "variable":
        monkeypatch.setenv("BATCHLAB_DATA", str(tmp_path / "data"))

    assert files.read(data_file(), tmp_path / "data" if given_as == "argument" else None, offline) == CONTENT


def test_the_variable_helps_where_the_given_folder_lacks_the_file(tmp_path, monkeypatch):
    put(tmp_path / "variable" / "a.bin")
    (tmp_path / "given").mkdir()
    monkeypatch.setenv("BATCHLAB_DATA", str(tmp_path / "variable"))

    assert files.read(data_file(), tmp_path / "given", offline) == CONTENT


def test_a_data_folder_below_the_home_folder_may_be_written_with_a_tilde(tmp_path, monkeypatch):
    put(tmp_path / "home" / "sets" / "a.bin")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    assert files.read(data_file(), Path("~/sets"), offline) == CONTENT


def test_a_data_folder_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"--data names .*nowhere, which is no folder"):
        files.read(data_file(), tmp_path / "nowhere", offline)


def test_a_variable_that_names_no_folder_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("BATCHLAB_DATA", str(tmp_path / "nowhere"))

    with pytest.raises(DataError, match=r"BATCHLAB_DATA names .*nowhere, which is no folder"):
        files.read(data_file(), None, offline)


# Checksums


@pytest.mark.parametrize("content", [CONTENT[:-1], CONTENT[::-1], b""], ids=["truncated", "changed", "empty"])
def test_a_file_with_another_checksum_is_refused_with_both_sums_and_a_way_out(tmp_path, content):
    path = put(tmp_path / "some-set" / "a.bin", content)

    with pytest.raises(DataError) as refusal:
        files.read(data_file(), tmp_path, lambda url, max_bytes: CONTENT)

    message = str(refusal.value)
    assert message.startswith(f"{path} is not the published some-set/a.bin")
    assert hashlib.sha256(content).hexdigest() in message and SUM in message
    assert f"of {len(content)} bytes" in message and "of 11 bytes" in message
    assert "delete it" in message and "\n" not in message


def test_a_spoilt_file_in_the_cache_is_refused(cache):
    put(cache / "some-set" / "a.bin", b"spoilt")

    with pytest.raises(DataError, match=r"is not the published some-set/a\.bin"):
        files.read(data_file(), None, offline)


def test_a_file_that_cannot_be_read_is_named(tmp_path, monkeypatch):
    put(tmp_path / "a.bin")

    def refuse(path: Path, flags: int) -> int:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr("batchlab.files.os.open", refuse)

    with pytest.raises(DataError, match=r"^Could not read \S+a\.bin: Permission denied"):
        files.read(data_file(), tmp_path, offline)


# State


def test_state_tells_present_fetchable_and_missing(tmp_path):
    assert files.state(data_file("http://somewhere/a.bin"), tmp_path) == "fetchable"
    assert files.state(data_file(), tmp_path) == "missing"

    put(tmp_path / "a.bin")

    assert files.state(data_file(), tmp_path) == "present"


def test_state_of_a_truncated_file_is_missing(tmp_path):
    """Loading would refuse it, so it is neither present nor would it be fetched."""
    put(tmp_path / "a.bin", CONTENT[:-1])

    assert files.state(data_file("http://somewhere/a.bin"), tmp_path) == "missing"


# Fetching


def test_a_missing_file_is_fetched_once_and_kept_in_the_cache(site, cache):
    file = data_file(f"{site}/good")

    assert files.read(file, None) == CONTENT
    assert everything_in(cache) == ["some-set/a.bin"]
    assert files.read(file, None, offline) == CONTENT


def test_fetching_writes_nothing_into_the_data_folder(site, tmp_path):
    (tmp_path / "data").mkdir()

    files.read(data_file(f"{site}/good"), tmp_path / "data")

    assert everything_in(tmp_path / "data") == []


@pytest.mark.parametrize("first", ["short", "long", "wrong", "nothing", "broken"])
def test_the_next_address_is_tried_where_one_fails(site, first):
    assert files.read(data_file(f"{site}/{first}", f"{site}/good"), None) == CONTENT


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        ("short", "10 bytes with SHA-256"),
        ("long", "more than 11 bytes"),
        ("wrong", f"11 bytes with SHA-256 {hashlib.sha256(CONTENT[::-1]).hexdigest()}, expected {SUM}"),
        ("nothing", "HTTP Error 404: Not Found"),
        ("broken", r"broken answer \(BadStatusLine\)"),
    ],
)
def test_a_bad_answer_is_refused_and_leaves_nothing(site, cache, page, reason):
    with pytest.raises(DataError, match=f"{site}/{page}: {reason}"):
        files.read(data_file(f"{site}/{page}"), None)

    assert not cache.exists()


def test_offline_the_message_tells_file_places_addresses_and_ways_out(tmp_path):
    file = data_file("http://one/a.bin", "http://two/a.bin")

    with pytest.raises(DataError) as refusal:
        files.read(file, tmp_path, offline)

    message = str(refusal.value)
    assert message.startswith("some-set/a.bin is missing")
    assert all(str(place) in message for place in files.places(file, tmp_path))
    assert "http://one/a.bin: no network; http://two/a.bin: no network" in message
    assert "--data DIR" in message and "BATCHLAB_DATA" in message and "\n" not in message


def test_a_missing_file_without_address_says_so():
    with pytest.raises(DataError, match="it cannot be fetched"):
        files.read(data_file(), None, offline)


def test_a_cache_that_cannot_be_written_is_a_storage_error(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(put(tmp_path / "a file")))

    with pytest.raises(StorageError, match=r"Could not write .*: (Not a directory|File exists)"):
        files.read(data_file("http://somewhere/a.bin"), None, lambda url, max_bytes: CONTENT)


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_leaves_nothing_half_written(cache, monkeypatch, call):
    def refuse(*args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, call, refuse)

    with pytest.raises(StorageError, match="No space left on device"):
        files.read(data_file("http://somewhere/a.bin"), None, lambda url, max_bytes: CONTENT)
    assert everything_in(cache) == []


def test_an_interrupt_while_writing_leaves_nothing_half_written(cache, monkeypatch):
    def interrupt(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)

    with pytest.raises(KeyboardInterrupt):
        files.read(data_file("http://somewhere/a.bin"), None, lambda url, max_bytes: CONTENT)
    assert everything_in(cache) == []


def test_a_folder_without_checksum_is_found_by_name_or_pattern(tmp_path, cache, monkeypatch):
    """First --data, then the variable's folder, then the cache; in each the dataset's own folder comes first."""
    given, variable = tmp_path / "given", tmp_path / "variable"
    monkeypatch.setenv("BATCHLAB_DATA", str(variable))

    for path in (cache / "b.tar", variable / "set" / "a", given / "b.tar", given / "set" / "a-1"):
        path.mkdir(parents=True)
        assert files.find_any(("a*", "b.tar"), ("set", "other"), given) == path

    assert files.find_any(("c",), ("set",), given) is None
    assert files.state_of_any(("c",), ("set",), given) == "missing"
    assert files.state_of_any(("a*",), ("set",), given) == "present"


def test_a_source_refuses_a_data_folder_that_is_none(tmp_path):
    with pytest.raises(DataError, match=r"--data names \S+/nowhere, which is no folder"):
        files.Source(tmp_path / "nowhere").find_any(("a",), ())


def test_gigabytes_in_the_place_of_a_published_file_are_not_read(tmp_path):
    put(tmp_path / "a.bin")
    os.truncate(tmp_path / "a.bin", 5 << 30)

    with pytest.raises(DataError, match=r"a\.bin: it has 5,368,709,120 bytes, more than"):
        files.read(data_file(), tmp_path)


def test_a_pipe_in_the_place_of_a_published_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.bin")

    with pytest.raises(DataError, match=r"a\.bin: it is no regular file"):
        files.read(data_file(), tmp_path)


def test_without_a_home_nothing_is_written_into_a_folder_of_that_name(tmp_path, monkeypatch):
    for name in ("HOME", "XDG_CACHE_HOME", "USER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    monkeypatch.chdir(tmp_path)

    assert files.state(data_file("http://nowhere"), None) == "fetchable"
    with pytest.raises(DataError, match="There is no home folder"):
        files.cache_dir()
    assert list(tmp_path.iterdir()) == []
