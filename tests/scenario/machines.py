"""
Machines of a test's own: processes in network namespaces on one bridge, each with its own host name, `/etc/hosts`, and directories
for its pool. They can reach each other and nothing else.
"""

import ctypes
import os
import secrets
import shutil
import socket
import subprocess
import sys
from collections.abc import Collection, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

WITHIN_S = 110.0
NETWORK = "10.231.77"
_OWN = ("var/lib/kettle", "run", "mnt")
"""Directories that each machine has for itself."""
_NETWORK_NAMESPACE = 0x4000_0000
"""CLONE_NEWNET of setns(2)."""
_PROGRAMS = {"ip": "iproute2", "iptables": "iptables", "unshare": "util-linux", "nsenter": "util-linux"}


class Ended:
    """What a command came to."""

    def __init__(self, status: int, said: str) -> None:
        self.status = status
        self.said = said


class Machine:
    """One of them."""

    def __init__(self, name: str, address: str, pid: int, place: Path) -> None:
        self.name = name
        self.address = address
        self._pid = pid
        self.place = place
        """Where its directories are, seen from outside."""

    @property
    def work(self) -> Path:
        """The working directory of its commands."""
        return self.place / "mnt"

    @property
    def home(self) -> Path:
        """The directory of its pool."""
        return self.place / "var/lib/kettle/pool"

    def seen(self, path: str) -> Path:
        """Where a file of it, in the working directory or one of its own, is for this process."""
        return self.place / Path("/mnt", path).relative_to("/")

    def run(self, *words: str, environ: Mapping[str, str] | None = None, cwd: str = "/mnt") -> Ended:
        """Carry out a command on it."""
        # nsenter's own option for the directory opens it before it enters the machine's mounts.
        there = ["sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", cwd, *words]
        inside = ["nsenter", f"--target={self._pid}", "--net", "--uts", "--mount", "--", *there]
        done = subprocess.run(
            inside,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=WITHIN_S,
            check=False,
            env={
                "PATH": f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/sbin:/bin",
                "HOME": "/mnt",
                "KETTLE_HOME": "/var/lib/kettle/pool",
                **{name: value for name, value in os.environ.items() if name.endswith("_BIN")},
                **(environ or {}),
            },
        )
        return Ended(done.returncode, done.stdout)

    def listener(self, port: int) -> socket.socket:
        """A socket of this process that listens on the machine's own address."""
        libc = ctypes.CDLL(None, use_errno=True)

        def made() -> socket.socket:
            with Path(f"/proc/{self._pid}/ns/net").open("rb") as space:
                # Of this thread alone, which ends here.
                if libc.setns(space.fileno(), _NETWORK_NAMESPACE):
                    raise OSError(ctypes.get_errno(), f"the network of {self.name} cannot be entered")
            return socket.create_server((self.address, port))

        with ThreadPoolExecutor(1) as thread:
            return thread.submit(made).result()

    def listening(self) -> set[str]:
        """Addresses at which something of it can be reached from outside, in the kernel's form."""
        found: set[str] = set()
        for table in ("tcp", "tcp6"):
            for line in self.run("cat", f"/proc/{self._pid}/net/{table}").said.splitlines()[1:]:
                _, local, _, state = line.split()[:4]
                if state == "0A" and not local.startswith(("0100007F", "00000000000000000000000001000000")):
                    found.add(local)
        return found


@contextmanager
def machines(
    place: Path, names: Sequence[str], *, domain: str, more_servers: Collection[str] = ()
) -> Generator[dict[str, Machine]]:
    """
    So many machines, gone at the end with everything that runs on them; the first one and `more_servers` can be connected to.
    """
    if os.geteuid() != 0:
        pytest.skip("only root can make network namespaces")
    for program, package in _PROGRAMS.items():
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed (Debian: {package})")
    with ExitStack() as stack:
        own = secrets.token_hex(3)  # other tests of this machine may have machines of the same names
        bridge = f"ktb{own}"
        addresses = {name: f"{NETWORK}.{number}" for number, name in enumerate(names, start=1)}
        hosts = "127.0.0.1 localhost\n" + "".join(
            f"{address} {name}.{domain} {name}\n" for name, address in addresses.items()
        )
        (place / "hosts").write_text(hosts)
        yard = f"kty{own}"  # the bridge has a namespace of its own: nothing of it is seen on this machine
        _ip("netns", "add", yard)
        stack.callback(_ip, "netns", "del", yard)
        _ip("-n", yard, "link", "add", bridge, "type", "bridge")
        _ip("-n", yard, "link", "set", bridge, "up")
        made: dict[str, Machine] = {}
        for name, address in addresses.items():
            open_to_all = not made or name in more_servers
            made[name] = _machine(stack, place, (yard, bridge, own), name, address, open_to_all=open_to_all)
        yield made


def _machine(
    stack: ExitStack, place: Path, net: tuple[str, str, str], name: str, address: str, *, open_to_all: bool
) -> Machine:
    yard, bridge, own = net
    space, cable = f"kt{own}{name}", f"k{own}{name}"
    _ip("netns", "add", space)
    stack.callback(_ip, "netns", "del", space)
    _ip("-n", yard, "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", space)
    _ip("-n", yard, "link", "set", cable, "master", bridge, "up")
    _ip("-n", space, "addr", "add", f"{address}/24", "dev", "eth0")
    for device in ("lo", "eth0"):
        _ip("-n", space, "link", "set", device, "up")
    if not open_to_all:
        words = ["iptables", "-A", "INPUT", "-i", "eth0", "-p", "tcp", "--syn", "-j", "DROP"]
        subprocess.run(["ip", "netns", "exec", space, *words], check=True, timeout=WITHIN_S)
    root = place / name
    mounts = [f"mount --bind {place / 'hosts'} /etc/hosts"]
    for directory in _OWN:
        (root / directory).mkdir(parents=True)
        mounts.append(f"mkdir -p /{directory} && mount --bind {root / directory} /{directory}")
    script = " && ".join([f"hostname {name}", *mounts, "echo ready", "exec sleep infinity"])
    process = subprocess.Popen(
        [
            "nsenter",
            f"--net=/run/netns/{space}",
            "unshare",
            "--uts",
            "--mount",
            "--propagation=private",
            "sh",
            "-c",
            script,
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    stack.callback(_end, process)
    assert process.stdout is not None
    assert "ready\n" == process.stdout.readline()
    return Machine(name, address, process.pid, root)


def _end(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.wait(timeout=WITHIN_S)
    if process.stdout is not None:
        process.stdout.close()


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, timeout=WITHIN_S)
