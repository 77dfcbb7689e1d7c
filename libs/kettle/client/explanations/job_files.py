"""
The files of a job that has ended, as far as they are on this machine: where its output is, and the end of its errors.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kettle.terminal.text import visible
from kettle_wire.ads.types import Ad

_BYTES: Final = 4096
_LINES: Final = 10
_WIDTH: Final = 200


def path_of(ad: Ad, name: str) -> Path | None:
    """Where a job's `Out` or `Err` is; None: it keeps none."""
    said, iwd = ad.get(name), ad.get("Iwd")
    if not isinstance(said, str) or said in {"", "/dev/null"} or "://" in said:
        return None
    return Path(iwd if isinstance(iwd, str) else "/") / said


def shown(ad: Ad, *, failed: bool) -> Iterator[str]:
    """Where its files are, and the end of the one with its errors, of a job that has `failed`."""
    out, err = path_of(ad, "Out"), path_of(ad, "Err")
    if out is not None and not failed:
        yield f"Its output is in {out}."
    if err is None or not failed:
        return
    lines = tail(err)
    if lines is None:
        yield f"What it wrote to its standard error is in {err}, which cannot be read here."
    elif lines:
        yield f"The end of its standard error, {err}:"
        yield from (f"    {line}" for line in lines)
    else:
        yield f"It wrote nothing to its standard error, {err}" + (
            f"; its output is in {out}." if out else "."
        )


def tail(path: Path) -> list[str] | None:
    """
    The last lines of a file, safe for a terminal; None: it is not here, or no file, or not ours to read.
    """
    try:
        # A pipe in its place must not keep us waiting.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            return None
        data = os.pread(descriptor, _BYTES, max(0, about.st_size - _BYTES))
    finally:
        os.close(descriptor)
    lines = data.decode(errors="replace").splitlines()
    return [_cut(visible(line)) for line in lines[-_LINES:]]


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else text[:_WIDTH] + "..."
