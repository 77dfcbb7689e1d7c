"""
The rights that a job needs for the files that it names by URL, as scopes of WLCG: no more than these files.

    storage.read:/path      for what it fetches
    storage.create:/path    for what it sends
"""

import posixpath
from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import unquote, urlsplit

WORD: Final = "urls"
"""In the place of permissions: those that the job's URLs take."""
_WITH_TOKENS: Final = frozenset({"root", "roots", "xroot", "xroots", "davs", "https"})
"""Methods by which a token is shown."""
_MOST: Final = 50
"""Scopes; of more files those of their directories are asked for."""


def url_scopes(ad: Mapping[str, object]) -> list[str]:
    """
    Of the input files, the destinations of results, and a destination of all of them; each once, in order.
    """
    read = [f"storage.read:{path}" for path in _paths(_listed(ad, "TransferInput"))]
    write = [f"storage.create:{path}" for path in _paths(_destinations(ad))]
    found = list(dict.fromkeys([*read, *write]))
    if len(found) > _MOST:
        found = list(
            dict.fromkeys(posixpath.dirname(scope) if scope.count("/") > 1 else scope for scope in found)
        )
    return found


def _paths(urls: Iterable[str]) -> Iterator[str]:
    for url in urls:
        if url.partition("://")[0].lower() in _WITH_TOKENS and "://" in url:
            path = posixpath.normpath("/" + unquote(urlsplit(url).path).lstrip("/"))
            if path != "/" and not any(character.isspace() or character == "," for character in path):
                yield path


def _listed(ad: Mapping[str, object], name: str) -> list[str]:
    value = ad.get(name)
    return [item.strip() for item in value.split(",")] if isinstance(value, str) else []


def _destinations(ad: Mapping[str, object]) -> Iterator[str]:
    remaps = ad.get("TransferOutputRemaps")
    for pair in remaps.split(";") if isinstance(remaps, str) else ():
        yield pair.partition("=")[2].strip()
    everything = ad.get("OutputDestination")
    if isinstance(everything, str):
        yield everything
