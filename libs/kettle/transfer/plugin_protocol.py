"""
HTCondor's file-transfer plugin protocol: what a plugin says of itself, what it is asked, what it answers.

    PLUGIN -classad                             says what it can, in old ClassAd syntax
    PLUGIN -infile ASK -outfile ANSWER          fetches; one ad in new syntax for each file, in both
    PLUGIN -infile ASK -outfile ANSWER -upload  sends
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from kettle.classad import (
    NOTHING,
    ClassAd,
    ClassAdParseError,
    EvaluationFailed,
    Form,
    evaluate_attribute,
    read_ads,
    read_long,
    unparse,
)
from kettle.transfer.file_lists import items
from kettle.transfer.plugin import Cached, Move, Plugin

ANSWER_BYTES: Final = 16 << 20
"""An answer that is longer is none."""


class ProtocolError(ValueError):
    """What a plugin said makes no sense."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What a plugin says of one file."""

    url: str = ""
    path: str = ""
    success: bool = False
    error: str = ""
    total: int = 0
    """Bytes that it says the file has; 0 or less: it does not say."""
    tag: str = ""
    """What names the state of a file that may be kept for the next job; only ours say it."""


def capabilities(path: str, text: str) -> Plugin:
    """
    A plugin as its `-classad` describes it.

    Raises ProtocolError if it does not say that it moves files, and which.
    """
    try:
        ad = read_long(text)
    except ClassAdParseError as error:
        raise ProtocolError(f"what -classad prints is no ad: {error}") from error
    kind = _value(ad, "PluginType")
    if kind != "FileTransfer":
        raise ProtocolError('-classad does not print PluginType = "FileTransfer"')
    methods = _value(ad, "SupportedMethods")
    listed = tuple(method.lower() for method in items(methods)) if isinstance(methods, str) else ()
    if not listed:
        raise ProtocolError("-classad prints no SupportedMethods")
    return Plugin(path=path, methods=listed, several=_value(ad, "MultipleFileSupport") is True)


def question(moves: Iterable[Move]) -> str:
    """The ads that a plugin is asked with."""
    return "".join(
        f"[ Url = {unparse(move.url)}; LocalFileName = {unparse(move.path)}{_known(move.cached)} ]\n"
        for move in moves
    )


def _known(cached: Cached | None) -> str:
    """What a plugin of ours is told of a file that was fetched before; to others nothing is said of it."""
    if cached is None:
        return ""
    sha256, tag = unparse(cached.sha256), unparse(cached.tag)
    return f"; KettleCachedFd = {cached.fd}; KettleCachedTag = {tag}; KettleCachedSum = {sha256}"


def asked(text: str) -> list[Move]:
    """The same, as a plugin of ours reads it.  Raises ProtocolError."""
    moves: list[Move] = []
    for ad in _ads(text):
        url, path = _value(ad, "Url"), _value(ad, "LocalFileName")
        if not isinstance(url, str) or not isinstance(path, str):
            raise ProtocolError("an ad without Url and LocalFileName")
        moves.append(Move(url, path, _cached(ad)))
    return moves


def _cached(ad: ClassAd) -> Cached | None:
    fd, tag, sha256 = (_value(ad, f"KettleCached{name}") for name in ("Fd", "Tag", "Sum"))
    if isinstance(fd, int) and isinstance(tag, str) and isinstance(sha256, str):
        return Cached(fd=fd, tag=tag, sha256=sha256)
    return None


def answer(text: str) -> list[Result]:
    """What a plugin answered, file by file.  Raises ProtocolError."""
    return [_result(ad) for ad in _ads(text)]


def _ads(text: str) -> Sequence[ClassAd]:
    try:
        # The answer's file may have been made longer before.
        return list(read_ads(text.strip("\0"), Form.NEW))
    except ClassAdParseError as error:
        raise ProtocolError(str(error)) from error


def _result(ad: ClassAd) -> Result:
    names = ("TransferUrl", "TransferFileName", "TransferError", "KettleTag")
    url, path, error, tag = (_value(ad, name) for name in names)
    total = _value(ad, "TransferTotalBytes")
    return Result(
        url=url if isinstance(url, str) else "",
        path=path if isinstance(path, str) else "",
        success=_value(ad, "TransferSuccess") is True,
        error=error if isinstance(error, str) else "",
        total=total if isinstance(total, int) and not isinstance(total, bool) else 0,
        tag=tag if isinstance(tag, str) else "",
    )


def _value(ad: ClassAd, name: str) -> object:
    try:
        return evaluate_attribute(name, ad, None, NOTHING)
    except EvaluationFailed:
        return None
