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
from kettle.transfer.data_rules import DataRule
from kettle.transfer.file_lists import items
from kettle.transfer.plugin import Cached, Move, Plugin

ANSWER_BYTES: Final = 16 << 20
"""A longer answer is invalid."""


class ProtocolError(ValueError):
    """The output of a plugin makes no sense."""


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
    record: str = ""
    """The whole record in JSON, as only ours say it."""
    seconds: float = 0.0
    """How long it took."""
    server: str = ""
    """Who served it, if it says so."""
    hit: bool | None = None
    """Whether a cache had it, if it says so."""
    tries: int = 0
    """How many there were, if it says so."""


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
        f"[ Url = {unparse(move.url)}; LocalFileName = {unparse(move.path)}{_known(move.cached)}{_ruled(move)} ]\n"
        for move in moves
    )


def _ruled(move: Move) -> str:
    """How the site wants it, and what the job calls it; for Kettle's own plugins as well."""
    rule = unparse(msgspec.json.encode(move.rule).decode()) if move.rule is not None else ""
    name = unparse(move.name) if move.name else ""
    return (f"; KettleRule = {rule}" if rule else "") + (f"; KettleName = {name}" if name else "")


def _known(cached: Cached | None) -> str:
    """Facts about a file that was fetched before, for Kettle's own plugins; other plugins do not get them."""
    if cached is None:
        return ""
    sha256, tag = unparse(cached.sha256), unparse(cached.tag)
    return f"; KettleCachedFd = {cached.fd}; KettleCachedTag = {tag}; KettleCachedSum = {sha256}"


def asked(text: str) -> list[Move]:
    """The requests, as one of Kettle's own plugins reads them.  Raises ProtocolError."""
    moves: list[Move] = []
    for ad in _ads(text):
        url, path = _value(ad, "Url"), _value(ad, "LocalFileName")
        if not isinstance(url, str) or not isinstance(path, str):
            raise ProtocolError("an ad without Url and LocalFileName")
        name = _value(ad, "KettleName")
        moves.append(
            Move(url, path, _cached(ad), name=name if isinstance(name, str) else "", rule=_rule_of(ad))
        )
    return moves


def _rule_of(ad: ClassAd) -> DataRule | None:
    text = _value(ad, "KettleRule")
    try:
        return msgspec.json.decode(text, type=DataRule) if isinstance(text, str) else None
    except msgspec.MsgspecError as error:
        raise ProtocolError(f"KettleRule: {error}") from error


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
    record, server = _value(ad, "KettleRecord"), _value(ad, "TransferHostName")
    cache, said, tries = (
        _value(ad, name) for name in ("HttpCacheHost", "HttpCacheHitOrMiss", "TransferTries")
    )
    return Result(
        record=record if isinstance(record, str) else "",
        server=next((each for each in (cache, server) if isinstance(each, str) and each), ""),
        hit=said.upper().startswith("HIT") if isinstance(said, str) and said else None,
        tries=tries if isinstance(tries, int) and not isinstance(tries, bool) else 0,
        seconds=max(0.0, _seconds(ad, "TransferEndTime") - _seconds(ad, "TransferStartTime")),
        url=url if isinstance(url, str) else "",
        path=path if isinstance(path, str) else "",
        success=_value(ad, "TransferSuccess") is True,
        error=error if isinstance(error, str) else "",
        total=total if isinstance(total, int) and not isinstance(total, bool) else 0,
        tag=tag if isinstance(tag, str) else "",
    )


def _seconds(ad: ClassAd, name: str) -> float:
    value = _value(ad, name)
    return float(value) if isinstance(value, int | float) else 0.0


def _value(ad: ClassAd, name: str) -> object:
    try:
        return evaluate_attribute(name, ad, None, NOTHING)
    except EvaluationFailed:
        return None
