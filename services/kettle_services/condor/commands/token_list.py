"""condor_token_list."""

import sys
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from kettle.auth.idtokens import token_files
from kettle.auth.tokens.checking.parsing import parse
from kettle.auth.tokens.verified import TokenError
from kettle_services.condor.arguments.grammar import Option, TypedOption, understood
from kettle_services.condor.arguments.tokens import places
from kettle_services.condor.errors import ToolError, WordsError

OPTIONS: Final = {
    "capability": Option(),
    "debug": Option(letters=True),
    "dir": Option(takes=1),
    "file": Option(takes=1),
    "name": Option(takes=1),
    "pool": Option(takes=1),
    "type": Option(takes=1),
}
HELP: Final = {
    "condor_token_list": """\
usage: condor_token_list [options]

The tokens with which your programs show who you are: a line each, with what is in it and the file.  Signatures are not shown,
so a line is worth nothing to who reads it.

  -dir DIRECTORY         those in this directory, and not in SEC_TOKEN_DIRECTORY or ~/.condor/tokens.d
  -file FILE             those in this file
  -debug                 changes nothing here
""",
}
_REFUSED: Final = ("capability", "name", "pool", "type")


class _Wanted(msgspec.Struct):
    """What was typed."""

    directory: Path | None = None
    file: Path | None = None


def run(name: str, words: list[str]) -> int:
    """Show them."""
    wanted = _Wanted()
    for given in understood(words, OPTIONS):
        _take(name, wanted, given)
    status = 0
    for path in _files(name, wanted):
        unreadable = 0
        for line in _lines(name, path):
            try:
                header, payload = _shown(line.text)
            except TokenError:  # its text might have a token in it that is only mistyped
                unreadable += 1
                continue
            sys.stdout.write(f"Header: {header} Payload: {payload} File: {path}\n")
        if unreadable:
            sys.stderr.write(f"Failed to decode {unreadable} JWT lines in keyfile '{path}'\n")
            status = 1
    return status


def _take(name: str, wanted: _Wanted, given: TypedOption) -> None:
    match given.name:
        case "":
            raise WordsError(f"Invalid command line argument: {given.values[0]}")
        case "dir":
            wanted.directory = Path(given.values[0])
        case "file":
            wanted.file = Path(given.values[0])
        case refused if refused in _REFUSED:
            raise ToolError(f"{name}: -{refused} is not carried out: a token says itself what it allows")
        case _:
            pass


def _files(name: str, wanted: _Wanted) -> list[Path]:
    if wanted.file is not None:
        return [wanted.file]
    if wanted.directory is not None:
        return _within(name, wanted.directory)
    place = places(name).tokens
    return _within(name, place) if place.exists() else []  # who has no tokens has no directory for them


def _within(name: str, directory: Path) -> list[Path]:
    try:
        return token_files.files(directory)
    except OSError as error:
        raise ToolError(f"{name}: Cannot open {directory}: {error.strerror} (errno={error.errno})") from None


def _lines(name: str, path: Path) -> Iterator[token_files.TokenLine]:
    try:
        yield from token_files.lines(path)
    except OSError as error:
        raise ToolError(
            f"{name}: Failed to open token file '{path}': {error.errno} ({error.strerror})"
        ) from None


def _shown(token: str) -> tuple[str, str]:
    """Header and payload as they were written, if that is one line. Raises TokenError."""
    parsed = parse(token)
    header, payload, _signature = token.split(".")
    return _line(header, parsed.header), _line(payload, parsed.claims)


def _line(part: str, values: dict[str, object]) -> str:
    text = urlsafe_b64decode(f"{part}==").decode()
    return text if text.isprintable() else msgspec.json.encode(values).decode()
