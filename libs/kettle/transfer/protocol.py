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
from kettle.transfer.manifest import items
from kettle.transfer.plugin import Move, Plugin

ANSWER_BYTES: Final = 16 << 20
"""An answer that is longer is none."""


class ProtocolError(ValueError):
    """What a plugin said makes no sense."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """
    What a plugin says of one file.
    """

    url: str = ""
    path: str = ""
    success: bool = False
    error: str = ""
    total: int = 0
    """Bytes that it says the file has; 0 or less: it does not say."""


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
    """
    The ads that a plugin is asked with.
    """
    return "".join(f"[ Url = {unparse(move.url)}; LocalFileName = {unparse(move.path)} ]\n" for move in moves)


def asked(text: str) -> list[Move]:
    """
    The same, as a plugin of ours reads it.  Raises ProtocolError.
    """
    moves: list[Move] = []
    for ad in _ads(text):
        url, path = _value(ad, "Url"), _value(ad, "LocalFileName")
        if not isinstance(url, str) or not isinstance(path, str):
            raise ProtocolError("an ad without Url and LocalFileName")
        moves.append(Move(url, path))
    return moves


def answer(text: str) -> list[Result]:
    """
    What a plugin answered, file by file.  Raises ProtocolError.
    """
    return [_result(ad) for ad in _ads(text)]


def _ads(text: str) -> Sequence[ClassAd]:
    try:
        return list(
            read_ads(text.strip("\0"), Form.NEW)
        )  # the answer's file may have been made longer before
    except ClassAdParseError as error:
        raise ProtocolError(str(error)) from error


def _result(ad: ClassAd) -> Result:
    url, path, error = (_value(ad, name) for name in ("TransferUrl", "TransferFileName", "TransferError"))
    total = _value(ad, "TransferTotalBytes")
    return Result(
        url=url if isinstance(url, str) else "",
        path=path if isinstance(path, str) else "",
        success=_value(ad, "TransferSuccess") is True,
        error=error if isinstance(error, str) else "",
        total=total if isinstance(total, int) and not isinstance(total, bool) else 0,
    )


def _value(ad: ClassAd, name: str) -> object:
    try:
        return evaluate_attribute(name, ad, None, NOTHING)
    except EvaluationFailed:
        return None
