"""Processes that find each other by a store in which others have met before."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch.distributed as dist

from batchlab.engine.gang.group import fresh_part


def meet(store, size):
    """Let ranks find each other; return what the first one has left for all, as each of them reads it."""
    with ThreadPoolExecutor(size) as pool:
        parts = list(pool.map(lambda rank: fresh_part(store, rank, size), range(size)))
    assert not any(part.check(["address"]) for part in parts)
    parts[0].set("address", f"of {size}")
    return [part.get("address") for part in parts]


@pytest.mark.parametrize("sizes", [(2, 2, 2), (4, 2, 3)])
def test_those_who_are_started_again_see_nothing_of_those_before(sizes):
    store = dist.HashStore()

    for size in sizes:
        assert meet(store, size) == [f"of {size}".encode()] * size


def test_a_name_that_somebody_has_left_who_died_before_all_had_met_is_not_waited_for():
    store = dist.HashStore()
    store.set("here/1", "dead")
    store.set("all", "dead too,dead")

    assert meet(store, 2) == [b"of 2"] * 2
