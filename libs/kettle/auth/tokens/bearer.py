"""
Where a program finds the token of the person who runs it: WLCG Bearer Token Discovery (zenodo.org/records/3937438).

The first place that is named or has a file decides: a token that is broken there is not replaced by another person's or
an older one somewhere else.
"""

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kettle.auth.tokens.checking.parsing import MOST_BYTES

_TEMPORARY: Final = "/tmp"  # noqa: S108 - the place that the rules name; owner and kind of the file are looked at


class NoTokenError(Exception):
    """A place has no token that can be used; the text names the place, and never has the token in it."""


_VARIABLE: Final = "BEARER_TOKEN"
_NAMED: Final = "BEARER_TOKEN_FILE"


def place(environ: Mapping[str, str], user: int, *, temporary: str = _TEMPORARY) -> str:
    """Where the token is, for `read`: the name of a variable, or a path; empty: there is none anywhere."""
    if environ.get(_VARIABLE, "").strip():
        return _VARIABLE
    if environ.get(_NAMED, ""):
        return _NAMED
    for directory in (environ.get("XDG_RUNTIME_DIR", ""), temporary):
        path = Path(directory) / f"bt_u{user}"
        if directory and os.path.lexists(path):
            return str(path)
    return ""


def read(found: str, environ: Mapping[str, str], user: int | None = None) -> str:
    """
    The token at a place that `place` has named.

    Raises NoTokenError: it has none, or somebody else may have put it there.
    """
    if found == _VARIABLE:
        return environ.get(_VARIABLE, "").strip()
    if found == _NAMED:
        return _read(Path(environ.get(_NAMED, "")))
    return _read(Path(found), os.geteuid() if user is None else user)


def discovered(environ: Mapping[str, str], user: int, *, temporary: str = _TEMPORARY) -> str | None:
    """
    The token, or None if there is none anywhere.

    Raises NoTokenError: a place that was named has none, or somebody else may have put it there.
    """
    found = place(environ, user, temporary=temporary)
    return read(found, environ, user) if found else None


def _read(path: Path, user: int | None = None) -> str:
    """`user`: who must have put it there, where everybody may put files."""
    flags = os.O_RDONLY | os.O_CLOEXEC | (os.O_NOFOLLOW | os.O_NONBLOCK if user is not None else 0)
    try:
        with os.fdopen(os.open(path, flags), "rb") as file:
            found = os.fstat(file.fileno())
            if user is not None and (
                not stat.S_ISREG(found.st_mode) or found.st_uid not in {0, user} or found.st_mode & 0o022
            ):
                raise NoTokenError(f"{path} is not used as a token: somebody else may have written it")
            data = file.read(MOST_BYTES + 2)
    except OSError as error:
        raise NoTokenError(f"{path} has no token that can be read: {error.strerror}") from None
    text = data.decode("utf-8", "replace").strip()
    if not text or len(text) > MOST_BYTES or any(each.isspace() for each in text):
        raise NoTokenError(f"{path} has no token in it: it is to have one, and nothing else")
    return text
