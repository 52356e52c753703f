"""Step times in a lab: written whole, sealed, checked when read."""

from __future__ import annotations

import json

import pytest

from batchlab.errors import DamagedError, LabError, SpecError
from batchlab.store.throughput import (
    MeasuredLink,
    MeasuredSteps,
    MeasuredSums,
    ThroughputRecord,
    read_throughput,
    read_throughputs,
    save_throughput,
)


def record(
    workload: str = "digits/fc_128/sgd", at: str = "2026-01-01T00:00:00+00:00", cores: int = 2
) -> ThroughputRecord:
    return ThroughputRecord(
        workload=workload,
        spec={"dataset": "digits"},
        engine={},
        device="cpu",
        machine={"cpu": "a processor", "cores": cores},
        measured_at=at,
        times=tuple(MeasuredSteps(batch_size=size, seconds=(0.1 * size, 0.2 * size)) for size in (1, 2)),
    )


def test_what_is_written_is_read(tmp_path):
    path = save_throughput(tmp_path, record())

    assert path.parent == tmp_path / "throughput"
    assert path.name.startswith("digits.fc_128.sgd-")
    assert read_throughput(path) == record()


def test_settings_that_make_steps_faster_or_slower_are_part_of_the_name():
    usual = record().model_copy(update={"engine": {"device": "auto", "precision": "float32"}})
    other = record().model_copy(
        update={"engine": {"precision": "bfloat16", "microbatch_size": 32}, "link": "latency=2ms"}
    )

    assert usual.machine_name == "a processor, 2 cores"
    assert other.machine_name == ("a processor, 2 cores, bfloat16, microbatches of 32, workers joined by latency=2ms")


def test_several_workers_and_their_link_are_kept(tmp_path):
    several = record().model_copy(
        update={
            "times": (
                MeasuredSteps(batch_size=8, seconds=(0.1,)),
                MeasuredSteps(batch_size=8, workers=4, seconds=(1.0,)),
            ),
            "sums": tuple(MeasuredSums(num_bytes=size, workers=4, seconds=(0.1, 0.2)) for size in (64, 1024)),
            "payloads": (1000, 4),
            "link": "latency=2ms",
            "seen": MeasuredLink(
                means="a relay",
                round_trip=0.004,
                throughput=1e7,
                without=MeasuredSums(num_bytes=64, workers=4, seconds=(0.001,)),
            ),
        }
    )

    assert read_throughput(save_throughput(tmp_path, several)) == several
    assert save_throughput(tmp_path, several) != save_throughput(tmp_path, record())
    assert several.machine_name == "a processor, 2 cores, workers joined by latency=2ms"
    assert [several.is_shared(workers) for workers in (1, 2, 4)] == [False, False, True]


def test_a_record_of_one_worker_from_before_is_read_as_it_was(tmp_path):
    before = {key: value for key, value in record().plain().items() if key not in ("sums", "payloads")}

    assert ThroughputRecord.parse(before, "a file") == record()
    assert ThroughputRecord.parse(before, "a file").file_name == "digits.fc_128.sgd-51a68002e2a0.json"


def test_one_file_for_each_workload_and_machine(tmp_path):
    save_throughput(tmp_path, record())
    save_throughput(tmp_path, record(cores=64))
    save_throughput(tmp_path, record("digits/fc_128/adam"))
    save_throughput(tmp_path, record(at="2026-01-02T00:00:00+00:00"))

    found, problems = read_throughputs(tmp_path)

    assert problems == []
    assert len(found) == 3
    assert found[0].measured_at == "2026-01-02T00:00:00+00:00"  # the newest first, in the place of the older


def test_a_lab_without_any_has_none(tmp_path):
    assert read_throughputs(tmp_path) == ([], [])


def test_a_changed_file_is_named_and_the_others_are_read(tmp_path):
    path = save_throughput(tmp_path, record())
    save_throughput(tmp_path, record(cores=64))
    path.write_bytes(path.read_bytes().replace(b"0.2", b"0.3"))

    found, problems = read_throughputs(tmp_path)

    assert len(found) == 1
    assert len(problems) == 1
    assert isinstance(problems[0], DamagedError)
    assert "was changed after it was written" in str(problems[0])


def test_a_file_under_another_name_is_refused(tmp_path):
    path = save_throughput(tmp_path, record())
    other = path.with_name("another.json")
    path.rename(other)

    with pytest.raises(DamagedError, match="its name should be digits"):
        read_throughput(other)


def test_a_link_is_refused(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    lab = tmp_path / "lab"
    lab.mkdir()
    (lab / "throughput").symlink_to(elsewhere)

    with pytest.raises(LabError, match="is a link"):
        save_throughput(lab, record())
    assert isinstance(read_throughputs(lab)[1][0], LabError)
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize(
    "times",
    [
        [{"batch_size": 1, "seconds": [0.1]}],
        [{"batch_size": 1, "seconds": [0.1]}, {"batch_size": 1, "seconds": [0.2]}],
        [{"batch_size": 1, "seconds": []}, {"batch_size": 2, "seconds": [0.2]}],
        [{"batch_size": 1, "seconds": [-0.1]}, {"batch_size": 2, "seconds": [0.2]}],
        [{"batch_size": 0, "seconds": [0.1]}, {"batch_size": 2, "seconds": [0.2]}],
        [{"batch_size": 1, "seconds": [float("nan")]}, {"batch_size": 2, "seconds": [0.2]}],
        [{"batch_size": 1, "seconds": [1e-320]}, {"batch_size": 2, "seconds": [0.2]}],
        [{"batch_size": 1, "seconds": [1e300]}, {"batch_size": 2, "seconds": [0.2]}],
        [{"batch_size": 1, "seconds": [0.1]}, {"batch_size": 10**30, "seconds": [0.2]}],
        [{"batch_size": 8, "seconds": [0.1]}, {"batch_size": 16, "workers": 2, "seconds": [0.2]}],
    ],
)
def test_times_that_make_no_sense_are_refused(times):
    data = json.loads(json.dumps({**record().plain(), "times": times}))

    with pytest.raises(SpecError, match="times"):
        ThroughputRecord.parse(data, "a file")


@pytest.mark.parametrize(
    ("sums", "words"),
    [
        ([{"num_bytes": 8, "workers": 2, "seconds": [0.1]}], "of one size"),
        ([{"num_bytes": 8, "workers": 2, "seconds": [0.1]}] * 2, "8 bytes on 2 workers are there twice"),
        ([{"num_bytes": 8, "workers": 1, "seconds": [0.1]}], "at least 2"),
        ([{"num_bytes": 8, "workers": 2, "seconds": [0.0]}], "at least 1e-12"),
    ],
)
def test_sums_that_make_no_sense_are_refused(sums, words):
    with pytest.raises(SpecError, match=words):
        ThroughputRecord.parse({**record().plain(), "sums": sums}, "a file")
