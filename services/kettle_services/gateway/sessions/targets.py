"""
Where a browser is led after it has signed in: never to another site, whatever an address says, and to nothing that signs it in or out.
"""

import posixpath
import re
from typing import Final
from urllib.parse import unquote

_LONGEST: Final = 2_000
_PATH: Final = re.compile(r"[^?#]*")
_SIGNS: Final = frozenset({"login", "logout"})
"""Where pages do that begin; a page of ours that led there would count as a person's own wish."""


def own_target(said: str, *, above: str = ".") -> str:
    """
    An address relative to the page that leads there, so that it holds behind a proxy that puts a path before ours.

    `said`: a path of ours with its query, as somebody's address has it; what is none leads to the first page. `above`: the way
    from the page that leads there to the root.
    """
    printable = said.isascii() and said.isprintable() and len(said) <= _LONGEST
    ours = printable and said.startswith("/") and not said.startswith(("//", "/\\")) and not _signs(said)
    return f"{above}{said if ours else '/'}"


def _signs(address: str) -> bool:
    """Whether a browser that goes there signs in or out, by whatever spelling."""
    found = _PATH.match(address)
    assert found is not None, "the pattern matches everything"
    path = posixpath.normpath(f"/{unquote(found[0])}".replace("\\", "/"))
    return path.strip("/").partition("/")[0].lower() in _SIGNS
