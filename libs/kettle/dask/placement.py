"""
Where a program of a session runs: which job it is, and in which network others find it directly.

Two programs of one site reach each other; so do two on one machine that share its network.  Everybody else comes through
the gateway.
"""

import os
import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

LOOPBACK: Final = "127.0.0.1"
EVERYWHERE: Final = "0.0.0.0"  # noqa: S104  only in a network that its machines name as theirs, by SiteName
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE: Final = "/proc/self/ns/net"
_LITERAL: Final = re.compile(r'(?P<whole>\d{1,18})|(?P<real>\d+\.\d+)|"(?P<text>[^"\\]*)"')
_SOMEWHERE: Final = ("192.0.2.1", 9)
"""An address for documentation: nothing is sent to it, the kernel only says by which of its own it would."""


class NotInJobError(Exception):
    """A program that is for jobs was started elsewhere; the message is a sentence."""


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """Of one program."""

    job: str = ""
    """The id of the job that it is; empty outside of jobs."""
    networks: frozenset[str] = frozenset()
    """Those that it is in, as addresses name them."""
    host: str = LOOPBACK
    """Its address for those who may come directly."""
    network: str = ""
    """The network in which `host` means it."""
    cores: int = 1
    memory_bytes: int = 0
    """What the job was given; 0: not known."""

    @property
    def binds(self) -> str:
        """
        The address on which it listens: that of the loopback device where nobody may come from another machine.

        Who has no certificate of the session gets no further than a handshake anywhere.
        """
        return LOOPBACK if self.host == LOOPBACK else EVERYWHERE


def machine_network() -> str:
    """
    The name of this machine's network as this process sees it: two processes that have it share a loopback device.
    """
    boot = _BOOT.read_text().strip() if _BOOT.exists() else socket.gethostname()
    try:
        namespace = Path(_NAMESPACE).readlink().name
    except OSError:
        namespace = ""
    return f"machine:{boot}.{''.join(each for each in namespace if each.isdigit())}"


def own_address() -> str:
    """The address by which this machine sends to others; the loopback device's if it reaches none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_SOMEWHERE)
        except OSError:
            return LOOPBACK
        return str(probe.getsockname()[0])


def of_site(name: str) -> str:
    """The network of a site, by its machines' `SiteName`."""
    return f"site:{name}"


def placement_of_person() -> Placement:
    """Where a program is that is no job, as one in a notebook."""
    return Placement(networks=frozenset({machine_network()}))


def placement_of_job(environ: Mapping[str, str] = os.environ) -> Placement:
    """
    What a job's own ads say, whose files its environment names.

    Raises:
        NotInJobError: there are none.
    """
    job, machine = _ad(environ, "_CONDOR_JOB_AD"), _ad(environ, "_CONDOR_MACHINE_AD")
    cluster, proc = _value(job, "ClusterId"), _value(job, "ProcId")
    if not isinstance(cluster, int) or not isinstance(proc, int):
        raise NotInJobError("the job's ad does not say which job it is")
    here = machine_network()
    site = _value(machine, "SiteName")
    shared = (
        {"host": own_address(), "network": of_site(site)}
        if isinstance(site, str) and site
        else {"network": here}
    )
    return Placement(
        job=f"{cluster}.{proc}",
        networks=frozenset({here, shared["network"]}),
        cores=max(1, int(_number(machine, "Cpus") or 1)),
        memory_bytes=int(_number(machine, "Memory") * 2**20),
        **shared,
    )


def _ad(environ: Mapping[str, str], name: str) -> str:
    try:
        return Path(environ[name]).read_text()
    except (KeyError, OSError) as error:
        raise NotInJobError(
            "this program is for jobs: `kettle dask create` or KettleCluster starts it"
        ) from error


def _value(ad: str, name: str) -> object:
    """
    What an ad says of itself.  A literal that stands there once is read as it is: every worker reads some as it starts, and to load the
    whole language for that would take it longer.
    """
    lines = re.findall(rf"^{name}[ \t]*=(.*)$", ad, re.MULTILINE | re.IGNORECASE)
    if not lines:
        return None
    if len(lines) > 1 or (found := _LITERAL.fullmatch(lines[0].strip())) is None:
        from kettle.classad import evaluate_attribute, read_long

        return evaluate_attribute(name, read_long(ad))
    if found["whole"]:
        return int(found["whole"])
    return float(found["real"]) if found["real"] else found["text"]


def _number(ad: str, name: str) -> float:
    value = _value(ad, name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0
