"""Engines for containers that tests have for themselves: a store of podman's, a Docker daemon."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from kettle.testing.patience import PATIENCE_S

_PATH: Final = "/usr/sbin:/usr/bin:/sbin:/bin"
_PAUSE_S: Final = 0.1


@contextmanager
def engine(name: str) -> Generator[list[str]]:
    """
    The options of the command `name` (`podman` or `docker`) with which it uses an engine that is there for the context.
    """
    place = Path(tempfile.mkdtemp(prefix="kettle-engine-"))
    try:
        with (_docker if name == "docker" else _podman)(place) as options:
            yield options
    finally:
        _unmount(place)
        shutil.rmtree(place)


def _unmount(place: Path) -> None:
    """Engines leave their store, or a namespace, mounted on itself until the machine is shut down."""
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for point in reversed(points):
        if point.startswith(f"{place}/"):
            subprocess.run(["umount", "-l", point], check=True)


@contextmanager
def _podman(place: Path) -> Generator[list[str]]:
    options = [f"--root={place / 'root'}", f"--runroot={place / 'run'}"]
    subprocess.run(["podman", *options, "info"], env=_environment(), stdout=subprocess.PIPE, check=True)
    try:
        yield options
    finally:
        if os.geteuid() != 0:  # what belongs to other accounts of a user namespace only podman can remove
            subprocess.run(
                ["podman", "unshare", "rm", "-rf", str(place / "root")], env=_environment(), check=True
            )


@contextmanager
def docker_with_networks() -> Generator[list[str]]:
    """
    The options of `docker` for an engine whose containers have networks: it is in a namespace of its own, so the machine's network is as
    it was.  Takes root.
    """
    name = f"kettle-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    place = Path(tempfile.mkdtemp(prefix="kettle-engine-"))
    inside = ["nsenter", f"--net=/run/netns/{name}"]
    try:
        subprocess.run([*inside, "ip", "link", "set", "lo", "up"], check=True)
        with _daemon(place, inside, []) as options:
            yield options
    finally:
        _unmount(place)
        shutil.rmtree(place)
        subprocess.run(["ip", "netns", "delete", name], check=True)


@contextmanager
def _docker(place: Path) -> Generator[list[str]]:
    """Without a network of its own: it would change that of the machine."""
    options = ["--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false"]
    with _daemon(place, [], options) as found:
        yield found


@contextmanager
def _daemon(place: Path, before: list[str], options: list[str]) -> Generator[list[str]]:
    host = f"unix://{place / 'sock'}"
    words = [
        *before, "dockerd", "--data-root", str(place / "data"), "--exec-root", str(place / "exec"),
        "--pidfile", str(place / "pid"), "--host", host, *options,
    ]  # fmt: skip
    with (place / "log").open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log, env=_environment(), start_new_session=True)
    try:
        _until_ready(process, ["docker", "--host", host, "version"], place / "log")
        yield ["--host", host]
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _until_ready(process: subprocess.Popen[bytes], question: list[str], log: Path) -> None:
    until = time.monotonic() + PATIENCE_S
    while subprocess.run(question, env=_environment(), capture_output=True, check=False).returncode:
        if process.poll() is not None or time.monotonic() > until:
            raise RuntimeError(f"{question[0]} did not start: {log.read_text(errors='replace')[-2000:]}")
        time.sleep(_PAUSE_S)


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("HOME", "XDG_RUNTIME_DIR") if name in os.environ}
    return {**kept, "PATH": _PATH}
