"""Step times in words: what is said, and what is not."""

from __future__ import annotations

from batchlab.analysis import StepTimes, Throughput
from batchlab.analysis.times.link import FittedLink, SeenLink, StepExchange, SumTimes
from batchlab.report.words.throughput import link_facts, throughput_facts, throughput_notes, throughput_table

MEASURED = Throughput.measured(
    [StepTimes(batch_size=size, seconds=(0.018 + size / 1400,) * 6) for size in (16, 64, 256)], machine="a machine"
)


def joined_workers() -> Throughput:
    fitted = FittedLink(form="gloo", latency=0.0021, bandwidth=1.2e7)
    without = SumTimes(num_bytes=4096, workers=2, seconds=(0.0004,) * 6)
    return Throughput.measured(
        [
            StepTimes(batch_size=size, workers=workers, seconds=(0.02 + size / workers / 1000,), is_shared=workers > 2)
            for workers in (1, 2, 4)
            for size in (16, 64)
        ],
        exchange=StepExchange(link=fitted, payloads=(38_464, 4)),
        link=SeenLink(asked="latency=2ms", means="a relay", round_trip=0.0041, throughput=1.2e7, without=without),
    )


def test_a_link_is_told_with_who_made_it_and_what_was_seen():
    found = joined_workers()

    facts = dict(throughput_facts(found.fit))
    assert facts["Latency of a message between workers (gloo)"] == "2.1 ms"
    assert facts["Bandwidth between workers"] == "96 mbit/s"
    assert facts["A step sums"] == "38,468 bytes in 2 sums"
    assert dict(link_facts(found)) == {
        "Workers joined by": "latency=2ms (a relay)",
        "Seen by plain sockets": "round trip 4.1 ms, TCP 96 mbit/s",
        "Latency that the link adds": "2 ms; the rest is software: without the link 4,096 bytes between 2 workers "
        "take 0.4 ms (n = 6)",
    }
    assert link_facts(MEASURED) == []


def test_workers_that_share_cores_are_marked_and_said():
    found = joined_workers()

    assert [row[-1] for row in throughput_table(found).rows] == ["", "", "", "", "shared cores", "shared cores"]
    assert throughput_notes(found)[0] == (
        "4 workers shared fewer cores: that says nothing of a machine with a core for each, so the fit and plans leave "
        "it out."
    )
    assert throughput_notes(MEASURED) == []


def test_what_is_measured_too_few_times_says_what_would_give_an_interval():
    two_sizes = Throughput.measured([StepTimes(batch_size=size, seconds=(0.02 + size / 1400,)) for size in (16, 64)])

    assert throughput_notes(two_sizes) == [
        "No 95 % interval for 2 of 2 step times: six repeats are the least for one.",
        "A fitted number has no 95 % interval where the data do not determine it, or where it would run over more "
        "than a factor of 1,000: more batch sizes would give one.",
    ]


def test_two_times_deviate_from_no_line():
    def told(*sizes):
        times = [StepTimes(batch_size=size, seconds=(0.02 + size / 1400 + size % 3 / 1000,)) for size in sizes]
        return dict(throughput_facts(Throughput.measured(times).fit))

    assert "Largest deviation from the line" not in told(16, 64)
    assert told(16, 64, 128)["Largest deviation from the line"] != "0.0 %"


def test_a_line_without_an_end_of_throughput_says_so():
    flat = Throughput.measured([StepTimes(batch_size=size, seconds=(0.02,) * 6) for size in (1, 2, 4)])

    assert any("not seen" in value for _, value in throughput_facts(flat.fit))
