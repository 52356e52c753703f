"""The address of a cluster is refused in one line before Ray is asked."""

from __future__ import annotations

import socket

import pytest

from batchlab.errors import InputError
from batchlab.run.executors.cluster_address import check_address


@pytest.mark.parametrize(
    "address", ["nonsense", "", "host:", ":6379", "host:0", "host:65536", "host:6379/x", "a b:6379"]
)
def test_what_is_no_address_is_refused(address):
    with pytest.raises(InputError, match="write the cluster's HOST:PORT"):
        check_address(address)


@pytest.mark.parametrize("address", ["auto", "local"])
def test_ray_finds_a_cluster_itself(address):
    check_address(address)


def listener():
    return socket.create_server(("127.0.0.1", 0))


def test_somebody_who_listens_may_be_a_cluster():
    with listener() as server:
        check_address(f"127.0.0.1:{server.getsockname()[1]}")
        check_address(f"ray://127.0.0.1:{server.getsockname()[1]}")


def test_nobody_there_is_one_line():
    with listener() as server:
        port = server.getsockname()[1]

    with pytest.raises(
        InputError, match=f"Address 127.0.0.1:{port}: there is no Ray cluster .*docs/cluster.md"
    ) as caught:
        check_address(f"127.0.0.1:{port}")

    assert "\n" not in str(caught.value)
