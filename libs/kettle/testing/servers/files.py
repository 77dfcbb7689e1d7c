"""
Real servers of files for tests, on the loopback interface: S3 (moto), WebDAV (wsgidav), XRootD with a cache before it.

Each serves below `url`; `write` and `read` look at its files from behind.
"""

import asyncio
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.held_port import held_port
from kettle.transfer.s3_signatures import Key, Place, signed

_LOOK_S: Final = 0.02
_BUCKET: Final = "bucket"
_KEY: Final = Key("the-id", "the-secret")
_PIECE: Final = 1 << 16
_ACCOUNT: Final = "xrootd"


class FileServer(ABC):
    """A server that runs."""

    def __init__(self, port: int) -> None:
        self.port: Final = port

    @abstractmethod
    def url(self, name: str, *, port: int = 0) -> str:
        """Of a file or directory, as a job names it; `port`: of somebody before the server."""

    def commands(self, *, port: int = 0) -> str:
        """What a submit description needs beside URLs."""
        del port
        return ""

    @abstractmethod
    def write(self, name: str, data: bytes) -> None:
        """Have a file there."""

    @abstractmethod
    def read(self, name: str) -> bytes | None:
        """The bytes of a file; None: there is none."""


class Directory(FileServer):
    """A server whose files are those of a directory."""

    def __init__(self, port: int, scheme: str, directory: Path) -> None:
        super().__init__(port)
        self._scheme = scheme
        self._directory = directory

    def url(self, name: str, *, port: int = 0) -> str:
        """Of a file."""
        between = "//" if self._scheme == "root" else "/"
        return f"{self._scheme}://127.0.0.1:{port or self.port}{between}{name}"

    def write(self, name: str, data: bytes) -> None:
        """Have a file."""
        path = self._directory / name
        path.write_bytes(data)
        path.chmod(0o644)

    def read(self, name: str) -> bytes | None:
        """Its bytes."""
        path = self._directory / name
        return path.read_bytes() if path.exists() else None


class Bucket(FileServer):
    """A bucket of an S3 server; `place` is where the keys lie."""

    def __init__(self, port: int, place: Path) -> None:
        super().__init__(port)
        self._keys = {"aws_access_key_id_file": place / "id", "aws_secret_access_key_file": place / "secret"}
        for path, word in zip(self._keys.values(), (_KEY.id, _KEY.secret), strict=True):
            path.write_text(f"{word}\n")
        self._ask("PUT", "")

    def url(self, name: str, *, port: int = 0) -> str:
        """Of a file."""
        del port
        return f"s3://{_BUCKET}/{name}"

    def commands(self, *, port: int = 0) -> str:
        """The keys, and where the service is."""
        files = "".join(f"{command} = {path}\n" for command, path in self._keys.items())
        return f"{files}s3_endpoint = http://127.0.0.1:{port or self.port}\n"

    def write(self, name: str, data: bytes) -> None:
        """Have a file."""
        self._ask("PUT", name, data)

    def read(self, name: str) -> bytes | None:
        """Its bytes."""
        try:
            return self._ask("GET", name)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 404:
                return None
            raise

    def _ask(self, method: str, name: str, data: bytes | None = None) -> bytes:
        there = Place(f"http://127.0.0.1:{self.port}/{_BUCKET}/{name}", "us-east-1")
        url = signed(there, method, _KEY, at=time.time(), lifetime=60)
        plain = {"Content-Type": "application/octet-stream"}  # else it is taken for a form
        request = urllib.request.Request(url, data=data, headers=plain, method=method)  # noqa: S310 - of ours
        with urllib.request.urlopen(request) as answer:  # noqa: S310 - of ours
            said: bytes = answer.read()
        return said


@contextmanager
def moto() -> Generator[str]:
    """The URL of a moto, which speaks as Amazon's services do."""
    port = held_port()
    with serving([*_script("moto_server"), "-H", "127.0.0.1", "-p", str(port)], port):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def s3(place: Path) -> Generator[Bucket]:
    """moto, with an empty bucket."""
    with moto() as url:
        port = urlsplit(url).port
        assert port is not None
        yield Bucket(port, place)


@contextmanager
def webdav(place: Path) -> Generator[Directory]:
    """wsgidav, with an empty directory."""
    port, directory = held_port(), place / "dav"
    directory.mkdir()
    where = ["--host", "127.0.0.1", "--port", str(port), "--root", str(directory)]
    with serving([*_script("wsgidav"), "--no-config", "--auth", "anonymous", *where], port):
        yield Directory(port, "dav", directory)


def no_xrootd() -> str:
    """Why there can be no XRootD server here; empty if there can."""
    for program, package in (("xrootd", "xrootd-server"), ("xrdcp", "xrootd-client")):
        if shutil.which(program) is None:
            return f"there is no {program} (Debian package {package})"
    try:
        pwd.getpwnam(_ACCOUNT)
    except KeyError:
        return f"there is no account {_ACCOUNT} (Debian package xrootd-server)" if not os.geteuid() else ""
    return ""


@contextmanager
def xrootd() -> Generator[tuple[Directory, Directory]]:
    """An origin with an empty directory, and a cache before it, which shows the same files."""
    with tempfile.TemporaryDirectory(prefix="kettle-xrootd-") as name:
        place, origin, cache = Path(name), held_port(), held_port()
        data = place / "data"
        for part in ("data", "kept", "origin", "cache"):
            (place / part).mkdir()
        said = {
            "origin": ["oss.localroot", str(data), "xrootd.chksum", "adler32"],
            "cache": [
                *("ofs.osslib", "libXrdPss.so", "pss.cachelib", "libXrdPfc.so", "pss.origin", f"127.0.0.1:{origin}"),
                *("oss.localroot", str(place / "kept"), "pfc.ram", "1g", "pfc.diskusage", "0.9 0.95"),
            ],
        }  # fmt: skip
        for role, port in (("origin", origin), ("cache", cache)):
            own = ["all.export", "/", "xrd.port", str(port)]
            own += ["all.adminpath", str(place / role), "all.pidpath", str(place / role)]
            words = [*own, *said[role]]
            lines = [f"{key} {value}\n" for key, value in zip(words[::2], words[1::2], strict=True)]
            (place / f"{role}.cfg").write_text("".join(lines))
        if not os.geteuid():
            _give_away(place)
        with (
            serving(_xrootd(place, "origin"), origin, account=True),
            serving(_xrootd(place, "cache"), cache, account=True),
        ):
            yield Directory(origin, "root", data), Directory(cache, "root", data)


@contextmanager
def forwarding_cache() -> Generator[Directory]:
    """
    A cache that is told with each file where its origin is (`root://CACHE//root://ORIGIN//PATH`); what it reads is what it keeps.
    """
    with tempfile.TemporaryDirectory(prefix="kettle-xcache-") as name:
        place, port = Path(name), held_port()
        for part in ("kept", "cache"):
            (place / part).mkdir()
        words = [
            *("all.export", "/root:/", "all.export", "/xroot:/", "xrd.port", str(port), "pss.origin", "="),
            *("ofs.osslib", "libXrdPss.so", "pss.cachelib", "libXrdPfc.so", "pfc.ram", "1g", "pfc.diskusage", "0.9 0.95"),
            *("oss.localroot", str(place / "kept"), "all.adminpath", str(place / "cache")),
            *("all.pidpath", str(place / "cache")),
        ]  # fmt: skip
        lines = [f"{key} {value}\n" for key, value in zip(words[::2], words[1::2], strict=True)]
        (place / "cache.cfg").write_text("".join(lines))
        if not os.geteuid():
            _give_away(place)
        with serving(_xrootd(place, "cache"), port, account=True):
            yield Directory(port, "root", place / "kept")


def _xrootd(place: Path, role: str) -> list[str]:
    return ["xrootd", "-c", str(place / f"{role}.cfg"), "-l", str(place / role / "log"), "-n", role]


def _give_away(place: Path) -> None:
    """The server refuses to run as root."""
    account = pwd.getpwnam(_ACCOUNT)
    for path in (place, *place.iterdir()):
        os.chown(path, account.pw_uid, account.pw_gid)


class Cutter:
    """
    Stands before a server, and cuts the connection that is the first to bring it more than `most` bytes, either way.
    """

    def __init__(self, port: int, most: int) -> None:
        self._port = port
        self._most = most
        self.cut = False
        self._server: asyncio.Server

    @property
    def port(self) -> int:
        """Where it stands."""
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def open(self) -> None:
        """Stand there."""
        self._server = await asyncio.start_server(self._pass_on, "127.0.0.1", 0)

    def close(self) -> None:
        """Let nobody in any more."""
        self._server.close()

    async def _pass_on(self, ours: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        theirs, forth = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            await asyncio.gather(self._copy(ours, forth, back), self._copy(theirs, back, forth))
        finally:
            for end in (back, forth):
                end.close()

    async def _copy(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, other: asyncio.StreamWriter
    ) -> None:
        passed = 0
        with suppress(ConnectionError):
            while piece := await source.read(_PIECE):
                passed += len(piece)
                if passed > self._most and not self.cut:
                    self.cut = True
                    for end in (sink, other):
                        assert end.transport is not None
                        end.transport.abort()
                    return
                sink.write(piece)
                await sink.drain()
            sink.close()


@asynccontextmanager
async def cutter(port: int, most: int) -> AsyncGenerator[Cutter]:
    """One that stands there while the context lasts."""
    standing = Cutter(port, most)
    await standing.open()
    try:
        yield standing
    finally:
        standing.close()


def _script(name: str) -> list[str]:
    """A program of the environment in which the tests run."""
    return [sys.executable, str(Path(sys.executable).with_name(name))]


@contextmanager
def serving(
    command: Sequence[str], port: int, *, environ: Mapping[str, str] | None = None, account: bool = False
) -> Generator[None]:
    """A server's process while the context lasts; it answers at `port` when it begins."""
    other = _ACCOUNT if account and not os.geteuid() else None
    process = subprocess.Popen(
        command,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        user=other,
        group=other,
        extra_groups=[] if other else None,
    )
    try:
        until = time.monotonic() + PATIENCE_S
        while not _answers(port):
            assert process.poll() is None, f"{command[0]} ended with {process.returncode}"
            assert time.monotonic() < until, f"nothing answers at port {port}"
            time.sleep(_LOOK_S)
        yield
    finally:
        process.kill()
        process.wait()


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1.0):
        return True
    return False
