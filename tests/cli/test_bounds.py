"""What is refused is refused soon and in little memory, before a lab is made."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

MOST_SECONDS = 2
MOST_KILOBYTES = 500_000

# The seconds, of the processor, are counted from when everything is imported that the command needs. Memory is the
# most that this process has had: what `resource` tells begins with that of the process which started it.
PROBE = """
import json, sys, time
from pathlib import Path
import batchlab.spec.load, batchlab.run.run_sweep, batchlab.run.displays, batchlab.cli.commands
if "networks" in sys.argv:
    import batchlab.engine.checks.buildable, batchlab.engine.torch_trainer
    sys.argv.remove("networks")
    batchlab.engine.checks.buildable.torch.nn.functional.conv2d(
        *(batchlab.engine.checks.buildable.torch.empty(1, 1, 3, 3, device="meta") for _ in range(2)))
if sys.argv[1] == "import":
    import batchlab.store.archive.importer, batchlab.cli.archive
from batchlab.cli import main
began = time.process_time()
try:
    main()
except SystemExit as end:
    kilobytes = int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
    print(json.dumps([end.code, time.process_time() - began, kilobytes]))
"""

CASES = {
    "a device": (["run", "/dev/zero"], "no regular file"),
    "a pipe": (["run", "pipe"], "no regular file"),
    "gigabytes": (["run", "giant.toml"], "5,368,709,120 bytes"),
    "brackets": (["run", "brackets.toml"], "nested more than"),
    "a long key": (["run", "key.toml"], "a key has more than"),
    "100,001 trials": (["run", "nqm", "--set", "sweep.trials=100001"], "give at most 100000"),
    "a million points and one": (["run", "digits", "--set", "sweep.max_attempts=1000001"], "give at most 1000000"),
    "a grid of a trillion points": (
        ["run", "nqm", "--set", "workload.optimizer=momentum", "--set",
         "search_space={learning_rate={min=0.1,max=1,points=1000000},momentum={min=0.1,max=0.9,points=1000000}}"],
        "1,000,000,000,000 points",
    ),
    "1,025 workers": (["run", "nqm", "--workers", "1025"], "1024"),
    "endless evaluations": (["run", "nqm", "--set", "sweep.max_steps=1000000000"], "sweep.evaluate"),
    "a lab that is a pipe": (["run", "nqm", "--lab", "pipe"], "pipe"),
    "a lab in a file": (["run", "nqm", "--lab", "key.toml"], "key.toml"),
    "data that is a pipe": (["run", "nqm", "--data", "pipe"], "no folder"),
    "a model larger than the memory": (
        ["networks", "run", "digits", "--set", "workload.model=fc_999999_999999"], "take a smaller one",
    ),
    "a network that cannot be built": (
        ["networks", "run", "small:imagenet/vgg_11/nesterov_momentum", "--set", "workload.alias=a/b/c", "--set",
         "workload.model=simple_cnn_base", "--set", "workload.dataset={name='tiny_imagenet', image_size=2}"],
        "cannot be built for inputs of 3x2x2",
    ),
    "an archive of a device": (["import", "/dev/zero"], "neither a folder nor a regular file"),
    "an archive of a pipe": (["import", "pipe"], "neither a folder nor a regular file"),
    "a header member of gigabytes": (["import", "header.tar"], "a header member of 5,368,709,120 bytes"),
    "a negative size": (["import", "negative.tar"], "negative or none at all"),
    "an absurd size": (["import", "absurd.tar"], "bytes, more than"),
    "millions of tiny members": (["import", "tiny.tar.gz"], "too small to be what their names say"),
    "millions of other members": (["import", "others.tar.gz"], "files that have no part"),
    "a device that holds no numbers": (["networks", "run", "digits", "--set", "engine.device=meta"], '"meta"'),
}  # fmt: skip


TRIAL = "mnist/fc_1/sgd/64/1"


def header(name: str, size: bytes = b"00000000000\0", kind: bytes = b"0") -> bytes:
    """One header of a tar file, its size written as given, with a right checksum."""
    info = tarfile.TarInfo(name)
    info.type = kind
    block = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    block[124:136], block[148:156] = size, b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def millions(kind: str) -> bytes:
    """Two million members without content, packed into a few megabytes."""
    names = (f"a/b/c/64/{n}/metadata.json" if kind == "tiny" else f"other-{n}" for n in range(20_000))
    return gzip.compress(b"".join(map(header, names)), 1) * 100


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="the memory cannot be measured here")
@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[pytest.mark.slow] if place % 4 else []) for place, case in enumerate(CASES)]
)
def test_it_is_one_line_within_seconds_and_memory(tmp_path, case):
    arguments, words = CASES[case]
    os.mkfifo("pipe")
    with Path("giant.toml").open("wb") as file:
        file.truncate(5 << 30)
    Path("brackets.toml").write_text("x = " + "[" * 100_000)
    Path("key.toml").write_text(".".join("a" * 100_000) + " = 1")
    Path("header.tar").write_bytes(header("a", b"%011o\0" % (5 << 30), b"x"))
    Path("negative.tar").write_bytes(header("a", b"\xff" * 12) + bytes(1024))
    Path("absurd.tar").write_bytes(header(f"{TRIAL}/metadata.json", b"\x80" + b"\0" * 3 + b"\x7f" * 8))
    for name in ("tiny", "others"):
        Path(f"{name}.tar.gz").write_bytes(millions(name) if f"{name}.tar.gz" in arguments else b"")

    command = [sys.executable, "-W", "error", "-c", PROBE, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)

    assert done.stderr.count("\n") == 1, done.stderr
    assert words in done.stderr
    code, seconds, kilobytes = json.loads(done.stdout)
    assert code == 2
    assert seconds < MOST_SECONDS
    assert kilobytes < MOST_KILOBYTES
    assert not Path("lab").exists()
