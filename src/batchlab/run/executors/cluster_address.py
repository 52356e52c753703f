"""The address of a Ray cluster, looked at before Ray does: which takes minutes to give up on one where nobody is."""

from __future__ import annotations

import re
import socket

from batchlab.errors import InputError, shown

ANY = ("auto", "local")
"""What Ray takes in place of one: a cluster that this machine is part of, or one of its own."""

SECONDS = 5.0


def check_address(address: str) -> None:
    """Raise InputError for what is no address of a cluster, or where nobody listens."""
    if address in ANY:
        return
    parts = re.fullmatch(r"(?:ray://)?(?P<host>[^\s:/]+|\[[0-9a-fA-F:]+\]):(?P<port>[0-9]{1,5})", address)
    if parts is None or not 0 < int(parts["port"]) < 1 << 16:
        raise InputError(f"Address {shown(address)}: write the cluster's HOST:PORT, such as 192.0.2.1:6379, or auto.")
    try:
        socket.create_connection((parts["host"].strip("[]"), int(parts["port"])), SECONDS).close()
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(
            f"Address {address}: there is no Ray cluster ({reason}). Start one: docs/cluster.md."
        ) from None
