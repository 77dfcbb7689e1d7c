"""
`root://` and `roots://` URLs: XRootD, by its own programs `xrdcp` and `xrdfs`, where they are installed.

Credentials are those of the job's environment (`BEARER_TOKEN_FILE`, `X509_USER_PROXY`), which the programs look at
themselves.  They would try a dead server for a long time: every call has its end here.
"""

import os
import re
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from kettle.transfer.file_lists import shown
from kettle.transfer.plugin import Move
from kettle.transfer.plugins.command_line import run
from kettle.transfer.recording import Recording, server_of
from kettle.transfer.xrootd_handshake import why_not
from kettle_wire.moved_files import (
    AUTHORIZATION,
    CONTACT,
    PARAMETER,
    RESOLUTION,
    SPECIFICATION,
    TRANSFER,
    ErrorType,
)

METHODS: Final = ("root", "roots", "xroot", "xroots")
TRIES: Final = 3
ASK_S: Final = 60.0
"""For a question: how large, which checksum."""
LEAST_S: Final = 300.0
"""For a copy, whatever its size."""
SLOWEST: Final = 1 << 20
"""Bytes in a second; a copy that is slower is given up."""
_PATIENCE: Final = {
    "XRD_CONNECTIONWINDOW": "15",
    "XRD_CONNECTIONRETRY": "2",
    "XRD_STREAMERRORWINDOW": "30",
    "XRD_REQUESTTIMEOUT": "120",
}
"""How long the programs wait for a server that does not answer, unless the job's environment says it."""
_PIECE: Final = 1 << 20
_SIZE: Final = re.compile(r"^Size:\s+(\d+)", re.MULTILINE)
_FLAGS: Final = re.compile(r"^Flags:\s+(.*)$", re.MULTILINE)
_OWN: Final = re.compile(r"\bIsWritable\b")
_ADLER: Final = re.compile(r"\badler32\s+([0-9a-fA-F]{1,8})\b")
_FINAL: Final = re.compile(r"\[(3006|3010|3011|3013|3015|3016|3018|3021)\]")
"""
Errors of servers that another try would not change: not authorised, not found, no file, a directory, there already, over the quota.
"""
_GONE: Final = "[3011]"
_KINDS: Final[tuple[tuple[re.Pattern[str], ErrorType], ...]] = (
    (re.compile(r"\[3011\]"), SPECIFICATION),
    (re.compile(r"\[3010\]|\[302[89]\]|\[303[0-4]\]|uth failed|No protocols left"), AUTHORIZATION),
    (re.compile(r"nvalid address|esolv"), RESOLUTION),
    (re.compile(r"onnection|ocket|was not done after|peration expired|no route"), CONTACT),
    (re.compile(r"does not name a file|has a token in it"), PARAMETER),
)
CACHE_S: Final = 5.0
"""For a cache to say that it is one; its silence costs a transfer this once."""

# Looked for while this still has the environment of the machine's own program, and not that of a job.
XRDCP: Final = shutil.which("xrdcp") or ""
XRDFS: Final = shutil.which("xrdfs") or ""


class XrootError(ValueError):
    """
    A file was not moved; `final`: another try would not change it; `kind`: HTCondor's word for what it is.
    """

    def __init__(self, why: str, *, final: bool = False, kind: ErrorType = "") -> None:
        super().__init__(why)
        self.final = final
        self.kind: ErrorType = kind or _kind_of(why)


def _kind_of(why: str) -> ErrorType:
    """By the server's number, or the program's words."""
    for pattern, kind in _KINDS:
        if pattern.search(why) is not None:
            return kind
    return TRANSFER


def lacks() -> str:
    """Why this machine cannot move such files; empty if it can."""
    for name, path in (("xrdcp", XRDCP), ("xrdfs", XRDFS)):
        if not path:
            return f"there is no program {name}; it is in the package xrootd-client"
    try:
        done = subprocess.run([XRDCP, "--version"], capture_output=True, timeout=ASK_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{XRDCP} cannot be run: {error}"
    return f"{XRDCP} --version exits with {done.returncode}" if done.returncode else ""


def main(arguments: Sequence[str]) -> int:
    """Be the plugin; its exit code."""
    return run(arguments, METHODS, fetch, send, refresh=Sources().refresh, deliver=deliver, remove=remove)


def fetch(url: str, path: str) -> int:
    """Copy a file into the sandbox, and compare what arrived."""
    return _from_origin(Move(url, path), Recording(url))


def _from_origin(move: Move, recording: Recording) -> int:
    address = _address(move.url)
    size = int(_stat(address)[1])
    _tried(lambda: _fetched(address, move.path, size, recording), address, recording)
    recording.served(address, "origin")
    return size


def size_at(url: str) -> int:
    """The bytes of the file that a URL names; raises XrootError."""
    return int(_stat(_address(url))[1])


class Sources:
    """Where the files of one transfer come from: a cache that does not answer once is not asked again."""

    def __init__(self) -> None:
        self._silent: dict[str, str] = {}
        """By URL of the cache, why."""

    def refresh(self, move: Move, recording: Recording) -> tuple[int, str]:
        """Fetch a file through the cache of the site, if there is one, or from where its URL says."""
        address, rule = _address(move.url), move.rule
        cached = rule.address(address) if rule is not None else ""
        if rule is not None and cached:
            try:
                return self._through(rule.cache, cached, move, recording), ""
            except XrootError as error:
                recording.failed(rule.cache, "cache", error.kind, str(error))
                if not rule.fallback:
                    raise XrootError(
                        f"the cache at {server_of(rule.cache)}, besides which the site allows no source: {error}",
                        final=True,
                    ) from error
        return _from_origin(move, recording), ""

    def _through(self, cache: str, address: str, move: Move, recording: Recording) -> int:
        if cache not in self._silent:
            self._silent[cache] = why_not(cache, within_s=CACHE_S)
        if why := self._silent[cache]:
            raise XrootError(why, kind=CONTACT)
        flags, size = _stat(address)
        _fetched(address, move.path, int(size), recording)
        # What it has not yet it may only read at its origin; what it has is a file of its own.
        recording.served(cache, "cache", hit=_OWN.search(flags) is not None)
        return int(size)


def send(url: str, path: str) -> int:
    """Copy a file to a server, which makes the directories, and compare what arrived."""
    return deliver(Move(url, path), Recording(url, upload=True))


def deliver(move: Move, recording: Recording) -> int:
    """As `send`, with notes."""
    address, size = _address(move.url), Path(move.path).stat().st_size
    _tried(lambda: _sent(address, move.path, size, recording), address, recording)
    return size


def remove(url: str) -> None:
    """Have a file removed; one that is not there is removed already.  A directory stays."""
    if url.endswith("/"):
        return
    if not XRDFS:
        raise XrootError("there is no program xrdfs; it is in the package xrootd-client", final=True)
    server, path = _server(_address(url))
    try:
        _run([XRDFS, server, "rm", path], ASK_S)
    except XrootError as error:
        if _GONE not in str(error):
            raise


def _fetched(address: str, path: str, size: int, recording: Recording) -> None:
    _copy([address, path], size)
    have = Path(path).stat().st_size
    if have != size:
        recording.compared("size", same=False)
        raise XrootError(f"the server has {size} bytes, and {have} arrived")
    recording.compared("size", same=True)
    _compare(address, path, recording)


def _sent(address: str, path: str, size: int, recording: Recording) -> None:
    _copy([path, address], size)
    have = int(_stat(address)[1])
    if have != size:
        recording.compared("size", same=False)
        raise XrootError(f"of {size} bytes the server has {have}")
    recording.compared("size", same=True)
    _compare(address, path, recording)


def _tried(move: Callable[[], None], address: str, recording: Recording) -> None:
    for tries in range(1, TRIES + 1):
        try:
            move()
        except XrootError as error:
            recording.failed(address, "origin", error.kind, str(error))
            if error.final or tries == TRIES:
                raise
        else:
            return


def _address(url: str) -> str:
    """The URL as the programs know it."""
    scheme, _, rest = url.partition("://")
    host, _, path = rest.partition("/")
    if "authz=" in unquote(rest).lower():
        raise XrootError(
            f"{shown(url)} has a token in it, which everybody on the machine could read: put it into a file, and name that "
            "in the job's environment as BEARER_TOKEN_FILE",
            final=True,
        )
    if not host or not path.strip("/"):
        raise XrootError(f"{shown(url)} does not name a file: write root://HOST//PATH", final=True)
    return f"{'roots' if scheme.lower().endswith('s') else 'root'}://{host}/{path}"


def _server(address: str) -> tuple[str, str]:
    """The server's address, and the path on it."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}", f"/{parts.path.lstrip('/')}" + (
        f"?{parts.query}" if parts.query else ""
    )


def _stat(address: str) -> tuple[str, str]:
    """The flags and the size of a file, as the server says them."""
    server, path = _server(address)
    said = _run([XRDFS, server, "stat", path], ASK_S)
    size, flags = _SIZE.search(said), _FLAGS.search(said)
    if size is None:
        raise XrootError(f"xrdfs stat says no size: {' '.join(said.split())}")
    return flags[1] if flags is not None else "", size[1]


def _copy(ends: Sequence[str], size: int) -> None:
    _run([XRDCP, "--force", "--nopbar", "--silent", *ends], LEAST_S + size / SLOWEST)


def _compare(address: str, path: str, recording: Recording) -> None:
    """Compare checksums, if the server has one."""
    server, there = _server(address)
    try:
        said = _run([XRDFS, server, "query", "checksum", there], ASK_S)
    except XrootError:
        return  # not every server counts them
    if (found := _ADLER.search(said)) is None:
        return
    ours = adler32(path)
    recording.compared("adler32", same=int(found[1], 16) == ours)
    if int(found[1], 16) != ours:
        raise XrootError(f"its checksum (adler32) is {found[1]} on the server and {ours:08x} here")


def adler32(path: str) -> int:
    """The checksum of a file, which is read piece by piece."""
    total = 1
    with Path(path).open("rb") as file:
        while piece := file.read(_PIECE):
            total = zlib.adler32(piece, total)
    return total


def _run(command: Sequence[str], limit: float) -> str:
    """What a program says.  Raises XrootError, with what it says of its failure."""
    name = Path(command[0]).name
    try:
        done = subprocess.run(
            command,
            env=_PATIENCE | dict(os.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise XrootError(f"{name} was not done after {limit:.0f} seconds") from error
    said = " ".join((done.stderr or done.stdout).decode(errors="replace").replace("\0", "").split())
    if done.returncode:
        raise XrootError(
            f"{name} exits with {done.returncode}: {said}", final=_FINAL.search(said) is not None
        )
    return done.stdout.decode(errors="replace")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
