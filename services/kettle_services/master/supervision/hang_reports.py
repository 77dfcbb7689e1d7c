"""
What is kept of a service that hung: what the kernel knew of it, and the stacks that it wrote when it was aborted.
"""

import logging
import os
import time
from pathlib import Path
from typing import Final

import msgspec

_log: Final = logging.getLogger(__name__)

KEPT: Final = 5
"""Files that are kept of each service; the oldest goes."""

_STACKS: Final = 1 << 20
_STATUS: Final = ("State", "Threads", "VmRSS", "SigBlk", "SigIgn")


class Hang(msgspec.Struct, frozen=True, kw_only=True):
    """A service just before it was aborted."""

    pid: int
    kernel: str
    written: int
    """Size of its log file then."""


def inspect_process(pid: int, log: Path) -> Hang:
    """What is visible from outside, as far as the kernel shows it."""
    lines = [
        line
        for line in _read(f"/proc/{pid}/status").splitlines()
        if line.startswith(tuple(f"{name}:" for name in _STATUS))
    ]
    where = ((name, _read(f"/proc/{pid}/{name}").strip()) for name in ("wchan", "syscall", "stack"))
    lines += [f"{name}: {text}" for name, text in where if text not in {"", "0"}]
    return Hang(pid=pid, kernel="\n".join(lines), written=log.stat().st_size if log.exists() else 0)


def write_report(hang: Hang, log: Path, name: str) -> Path | None:
    """
    Write `<name>.hang.<UTC>.txt` beside the log; None if the disk does not take it, which is no reason to stop.
    """
    path = log.with_name(f"{name}.hang.{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}.{hang.pid}.txt")
    try:
        with log.open("rb") as file:
            file.seek(hang.written)
            said = file.read(_STACKS)
        head = f"{name}, process {hang.pid}, gave no sign of life and was aborted.\n{hang.kernel}\n\n"
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(head.encode() + said)
        for old in sorted(log.parent.glob(f"{name}.hang.*.txt"))[:-KEPT]:
            old.unlink()
    except OSError as error:
        _log.warning("where %s hung cannot be written down: %s", name, error)
        return None
    return path


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
