"""
What the lists of a job ad mean: which file goes where, by HTCondor's rules.

Nothing here looks at a disk; both sides of a transfer use it.
"""

import posixpath
import re
from collections.abc import Mapping
from typing import Final

import msgspec

_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*)://(.*)", re.DOTALL)
_BETWEEN_PAIRS: Final = re.compile(r"(?<!\\);")
_IN_PAIR: Final = re.compile(r"(?<!\\)=")
_QUERY: Final = re.compile(r"[?#]")
_SECRETS: Final = re.compile(r"\?\S*|\bauthz=\S*", re.IGNORECASE)
_LOGIN: Final = re.compile(r"://[^/\s@]*@")
_DEPTH: Final = 20
"""How many directories of a name are looked for among the remaps."""


class ManifestError(ValueError):
    """A list that cannot be read; the message says where it stops making sense."""


def items(text: str) -> list[str]:
    """A comma-separated list; blanks around its items do not count, empty items neither."""
    return [item for part in text.split(",") if (item := part.strip())]


def is_url(item: str) -> bool:
    """Whether an item is fetched by a plugin instead of from the submitter's disk."""
    return _URL.fullmatch(item) is not None


def scheme_of(url: str) -> str:
    """The method of a URL in lower case; empty if it is none."""
    match = _URL.fullmatch(url)
    return match[1].lower() if match is not None else ""


def shown(url: str) -> str:
    """
    A URL as it may be shown to anybody: without a password, and without a query, which may hold a signature.
    """
    match = _URL.fullmatch(url)
    if match is None:
        return url
    host, slash, path = _QUERY.split(match[2])[0].partition("/")
    return f"{match[1]}://{host.rpartition('@')[2]}{slash}{path}"


def without_secrets(words: str) -> str:
    """What a program says, without the secrets that URLs have in them, however it spells those."""
    return _LOGIN.sub("://", _SECRETS.sub("", words))


def name_of_url(url: str) -> str:
    """
    The name under which a URL's file lies in the sandbox: the last part of its path.

    Raises ManifestError if there is none.
    """
    match = _URL.fullmatch(url)
    name = posixpath.basename(_QUERY.split(match[2])[0]) if match is not None else ""
    if not is_inside(name):
        raise ManifestError(f"{shown(url)} does not end with the name of a file")
    return name


def is_inside(name: str) -> bool:
    """Whether a relative name stays below its start, and can be sent: messages are UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in name and not any(part in {"", ".", ".."} for part in name.split("/"))


def leaves(item: str) -> bool:
    """Whether an item of an output list leads out of the sandbox."""
    inner = posixpath.normpath(item)
    return posixpath.isabs(item) or inner == ".." or inner.startswith("../") or "\0" in item


def placed(item: str, *, preserve: bool) -> str:
    """
    Where an item of a list goes on the other side: flat by base name, or under its relative path.

    A path that begins elsewhere has no relative place, and is flat too.
    """
    inner = posixpath.normpath(item)
    return inner if preserve and not leaves(item) else posixpath.basename(inner)


class Remaps(msgspec.Struct, frozen=True):
    """`TransferOutputRemaps`: other destinations, by name of a result or of a directory above it."""

    targets: Mapping[str, str]

    def find(self, name: str) -> str | None:
        """
        The destination of a result, a path or a URL; None: it keeps its name.

        The longest directory that is named counts, and what is below it stays below.
        """
        head, rest = name, ""
        for _ in range(_DEPTH):
            if (target := self.targets.get(head)) is not None:
                return posixpath.join(target, rest) if rest else target
            head, slash, last = head.rpartition("/")
            if not slash:
                return None
            rest = posixpath.join(last, rest) if rest else last
        return None


def remaps(text: str) -> Remaps:
    r"""
    Read `name = target; name = target`; of two for one name the first counts.

    A backslash makes `=` part of a name, and `;` part of a name or target; in targets `=` needs none: URLs have them.
    A target is not looked up again: `a = b; b = c` moves each by one.  Raises ManifestError.
    """
    targets: dict[str, str] = {}
    for pair in filter(str.strip, _BETWEEN_PAIRS.split(text)):
        name, *target = _IN_PAIR.split(pair, maxsplit=1)
        if not target:
            raise ManifestError(f"{pair.strip()!r} has no =; write: name = destination; name = destination")
        old, new = name.strip().replace("\\=", "=").replace("\\;", ";"), target[0].strip().replace("\\;", ";")
        if not old or not new:
            raise ManifestError(f"{pair.strip()!r} lacks the {'destination' if old else 'name'}")
        targets.setdefault(posixpath.normpath(old), new)
    return Remaps(targets)


def job_plugins(text: str) -> dict[str, str]:
    """
    Read `method = program; method, method = program`: by method, the path of a plugin that the job brings along.

    Raises ManifestError.
    """
    found: dict[str, str] = {}
    for pair in filter(str.strip, text.split(";")):
        methods, equals, path = pair.partition("=")
        if not equals or not items(methods) or not path.strip():
            raise ManifestError(f"{pair.strip()!r} is no plugin; write: method = program; method2 = program2")
        found |= dict.fromkeys((method.lower() for method in items(methods)), path.strip())
    return found
