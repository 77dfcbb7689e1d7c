"""condor_token_create."""

import os
import re
import sys
import time
from pathlib import Path
from typing import Final

import msgspec

from kettle.auth.idtokens import token_files
from kettle.auth.idtokens.idtoken import LEVELS, IdTokenClaims, create
from kettle.auth.idtokens.places import TokenPlaces, token_places
from kettle.auth.idtokens.pool_key import POOL, KeyFileError, read_key, signing_secret
from kettle.client.connections.condor_config import CondorConfig
from kettle_services.condor.arguments.grammar import Option, TypedOption, understood
from kettle_services.condor.errors import ToolError, WordsError, do_you_mean

OPTIONS: Final = {
    "authz": Option(takes=1),
    "debug": Option(letters=True),
    "file": Option(takes=1),
    "identity": Option(takes=1),
    "key": Option(takes=1),
    "lifetime": Option(takes=1),
    "token": Option(takes=1),
}
HELP: Final = {
    "condor_token_create": """\
usage: condor_token_create -identity USER@DOMAIN [options]

Makes a token with which programs of HTCondor show who they are, signed with the key of the pool, and prints it.  Only who may
read the key can make tokens.

  -identity USER@DOMAIN  whose token it is
  -authz LEVEL           limit it to a level, as READ or ADVERTISE_STARTD; may be given several times
  -lifetime SECONDS      how long it is valid; without end if this is not given
  -key NAME              the key that signs: a file in SEC_PASSWORD_DIRECTORY (POOL)
  -token NAME            write it into this file of the token directory, SEC_TOKEN_DIRECTORY
  -file FILE             write it into this file
  -debug                 changes nothing here
""",
}
_NOT_MADE: Final = 2
"""The exit status if there is no key, or none that may be used."""
_NUMBER: Final = re.compile(r"[+-]?\d{1,15}")


class _Wanted(msgspec.Struct):
    """What was typed."""

    identity: str = ""
    levels: list[str] = []
    lifetime: int | None = None
    key: str = POOL
    token: str = ""
    file: str = ""


def run(name: str, words: list[str]) -> int:
    """Make it."""
    wanted = _Wanted()
    for given in understood(words, OPTIONS):
        _take(name, wanted, given)
    if not wanted.identity:
        raise WordsError("-identity is needed: the user@domain whose token it is to be")
    try:
        places = token_places(CondorConfig(os.environ).get)
    except RuntimeError:
        raise ToolError(f"{name}: this account has no home for tokens: set SEC_TOKEN_DIRECTORY") from None
    token = _made(places, wanted)
    if not wanted.token and not wanted.file:
        sys.stdout.write(f"{token}\n")
        return 0
    place = Path(wanted.file) if wanted.file else _in_token_directory(places, wanted.token)
    try:
        token_files.write(place, token)
    except OSError as error:
        raise ToolError(f"Cannot write token to {place}: {error.strerror} (errno={error.errno})") from None
    return 0


def _take(name: str, wanted: _Wanted, given: TypedOption) -> None:
    match given.name:
        case "":
            raise WordsError(f"Invalid command line argument: {given.values[0]}")
        case "authz":
            wanted.levels.append(_level(given.values[0]))
        case "lifetime":
            if not _NUMBER.fullmatch(given.values[0]):
                raise ToolError(f"{name}: Invalid argument for -lifetime: {given.values[0]}.")
            seconds = int(given.values[0])
            wanted.lifetime = seconds if seconds >= 0 else None
        case "identity":
            wanted.identity = _identity(given.values[0])
        case "token":
            wanted.token, wanted.file = given.values[0], ""
        case "file":
            wanted.token, wanted.file = "", given.values[0]
        case "key":
            wanted.key = given.values[0]
        case _:
            pass


def _level(typed: str) -> str:
    level = typed.upper()
    if level not in LEVELS:
        raise WordsError(
            f"-authz takes one of {', '.join(LEVELS)}, and not {typed}{do_you_mean(level, LEVELS)}"
        )
    return level


def _identity(typed: str) -> str:
    user, at, domain = typed.partition("@")
    if not user or not at or not domain or not (typed.isascii() and typed.isprintable()) or " " in typed:
        raise WordsError(f"-identity takes USER@DOMAIN, and not '{typed}'")
    return typed


def _made(places: TokenPlaces, wanted: _Wanted) -> str:
    claims = IdTokenClaims(
        trust_domain=places.trust_domain,
        identity=wanted.identity,
        issued=int(time.time()),
        id=os.urandom(16).hex(),
        lifetime=wanted.lifetime,
        levels=wanted.levels,
    )
    key = wanted.key or POOL
    try:
        return create(claims, key, signing_secret(key, read_key(places.key(key))))
    except KeyFileError as error:
        raise ToolError(f"Failed to generate a token.\nTOKEN:1:{error}", _NOT_MADE) from None
    except ValueError as error:
        raise ToolError(f"Failed to generate a token.\nPASSWD:1:{error}", _NOT_MADE) from None


def _in_token_directory(places: TokenPlaces, name: str) -> Path:
    if name != Path(name).name or name in {".", ".."}:
        raise ToolError("Token name isn't a plain filename")
    return places.tokens / name
