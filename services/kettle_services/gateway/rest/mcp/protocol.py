"""
The messages of the Model Context Protocol, as much of it as tools need.

Pure.  https://modelcontextprotocol.io/specification/2025-06-18
"""

from typing import Any, Final

import msgspec

VERSIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26")
"""Revisions that are spoken, the newest first."""
PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602

Id = str | int


class Message(msgspec.Struct, frozen=True):
    """A request, or without an id a notification."""

    jsonrpc: str
    method: str
    id: Id | None = None
    params: dict[str, Any] = {}


class Failed(Exception):  # noqa: N818 - what has failed is a message
    """A message that cannot be answered; the text is one sentence."""

    def __init__(self, code: int, sentence: str, number: Id | None = None) -> None:
        super().__init__(sentence)
        self.code: Final = code
        self.number: Final = number


def read(data: bytes) -> Message:
    """A message; raises Failed."""
    try:
        decoded = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Failed(PARSE_ERROR, f"the message is no JSON: {error}") from error
    try:
        message = msgspec.convert(decoded, Message)
    except msgspec.ValidationError as error:
        raise Failed(INVALID_REQUEST, f"the message is none of JSON-RPC: {error}") from error
    if message.jsonrpc != "2.0":
        raise Failed(INVALID_REQUEST, "the message has to be of JSON-RPC 2.0", message.id)
    return message


def result(number: Id | None, said: dict[str, Any]) -> bytes:
    """The answer to a request."""
    return msgspec.json.encode({"jsonrpc": "2.0", "id": number, "result": said})


def failure(failed: Failed, number: Id | None) -> bytes:
    """The answer to a request that failed."""
    error = {"code": failed.code, "message": str(failed)}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": number, "error": error})


def version_of(params: dict[str, Any]) -> str:
    """
    The revision that both sides speak: the client's if it is known, else our newest, which the client may refuse.
    """
    asked = params.get("protocolVersion")
    return asked if asked in VERSIONS else VERSIONS[0]
