"""
Addresses of Dask's schedulers and workers that are jobs, as Dask carries them about.

    kettle://12.0/dask                                  the service `dask` of the job 12.0, through the gateway
    kettle://12.0/dask@10.0.0.7:40123,site:T2_XX        the same, and where it listens for those of its network
"""

import re
from typing import Final
from urllib.parse import quote, unquote

import msgspec

SCHEME: Final = "kettle"
NO_JOB: Final = "0.0"
"""Stands for the job of a scheduler that is none: only those of its network come to it."""
_JOB: Final = re.compile(r"\d+\.\d+")
_SERVICE: Final = re.compile(r"[a-z][a-z0-9-]{0,31}")
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1"})
_KEPT: Final = ":"
"""Stands in the name of a network as it is."""


class AddressError(ValueError):
    """A text is no such address; the message is a sentence."""


class JobAddress(msgspec.Struct, frozen=True):
    """Where a scheduler or a worker is."""

    job: str
    """The id of the job that it is, `CLUSTER.PROC`."""
    service: str
    """The name under which the job publishes it."""
    host: str = ""
    """Where it listens for those of its own network; empty: only the gateway leads there."""
    port: int = 0
    network: str = ""
    """In which network `host` means it, see `kettle.dask.placement`."""

    @property
    def location(self) -> str:
        """The address without `kettle://`."""
        if not self.host:
            return f"{self.job}/{self.service}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.job}/{self.service}@{host}:{self.port},{quote(self.network, safe=_KEPT)}"

    @property
    def machine(self) -> str:
        """
        Equal for those on one machine: its address, or the name of its network if nobody else is in that.
        """
        return self.network if self.host in _LOOPBACK else self.host or self.job

    def is_of(self, contact: str) -> bool:
        """Whether it leads to who says of himself that he is found at `contact`; empty: nobody is."""
        if not contact:
            return False
        there = read_address(contact)
        return self == there if NO_JOB in {self.job, there.job} else self.job == there.job

    def __str__(self) -> str:
        return f"{SCHEME}://{self.location}"


def read_address(text: str) -> JobAddress:
    """
    What an address says, with or without `kettle://`.

    Raises:
        AddressError: it is none.
    """
    published, at, direct = text.removeprefix(f"{SCHEME}://").partition("@")
    job, _, service = published.partition("/")
    if not _JOB.fullmatch(job) or not _SERVICE.fullmatch(service):
        raise AddressError(
            f"'{text}' is no address of a job's service: kettle://CLUSTER.PROC/SERVICE, for instance kettle://12.0/dask"
        )
    if not at:
        return JobAddress(job, service)
    where, _, network = direct.partition(",")
    host, _, port = where.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536 or not network:
        raise AddressError(
            f"'{text}' does not say where the service listens: after the @ stands HOST:PORT,NETWORK"
        )
    return JobAddress(job, service, host.removeprefix("[").removesuffix("]"), int(port), unquote(network))
