"""The name that Spark knows this machine by."""

from __future__ import annotations

import ipaddress
import os
import re
import socket

# An address reserved for documentation. Nothing is sent there.
_ANYWHERE = ("192.0.2.1", 9)


def this_host() -> str:
    """Return the host name that executors here register with, unless the cluster overrides it.

    As in Spark (`Utils.localHostName`): SPARK_LOCAL_HOSTNAME, else SPARK_LOCAL_IP, else the address
    of this machine's name, or its network address if that is a loopback address.
    """
    for variable in ("SPARK_LOCAL_HOSTNAME", "SPARK_LOCAL_IP"):
        if name := os.environ.get(variable):
            return name
    try:
        address = socket.gethostbyname(socket.gethostname())
    except OSError:
        address = "127.0.0.1"
    if not ipaddress.ip_address(address).is_loopback:
        return address
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_ANYWHERE)
        except OSError:
            return address
        return str(probe.getsockname()[0])


def worker_id_of(host: str) -> str:
    """Return the default id of a host's worker."""
    return re.sub("[^A-Za-z0-9_.-]", "_", host)
