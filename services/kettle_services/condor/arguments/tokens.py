"""What the commands about tokens take alike: levels, a lifetime, and where the token goes."""

import os
import re
import sys
from pathlib import Path
from typing import Final

import msgspec

from kettle.auth.idtokens import token_files
from kettle.auth.idtokens.idtoken import LEVELS
from kettle.auth.idtokens.places import TokenPlaces, token_places
from kettle.client.connections.condor_config import CondorConfig
from kettle_services.condor.arguments.daemon_types import require_type
from kettle_services.condor.arguments.grammar import Option, TypedOption
from kettle_services.condor.errors import ToolError, WordsError, do_you_mean

LIMITS: Final = {"authz": Option(takes=1), "lifetime": Option(takes=1)}
PLACE: Final = {"file": Option(takes=1), "token": Option(takes=1)}
DAEMON: Final = {
    "debug": Option(letters=True),
    "name": Option(takes=1),
    "pool": Option(takes=1),
    "type": Option(takes=1),
}
DAEMON_HELP: Final = """\
  -pool P                of which pool
  -name N, -type T       change nothing here: one service of the pool gives all tokens
  -debug                 changes nothing here
"""
_NUMBER: Final = re.compile(r"[+-]?\d{1,15}")


class TokenWords(msgspec.Struct):
    """What was typed, as far as several commands take it."""

    levels: list[str] = []
    lifetime: int | None = None
    """Seconds; None: nothing was said."""
    token: str = ""
    file: str = ""
    pool: str = ""

    def read(self, name: str, given: TypedOption) -> bool:
        """Take an option; whether it was one of these."""
        match given.name:
            case "authz":
                self.levels.append(_level(given.values[0]))
            case "lifetime":
                self.lifetime = _lifetime(name, given.values[0])
            case "token":
                self.token, self.file = given.values[0], ""
            case "file":
                self.token, self.file = "", given.values[0]
            case "pool":
                self.pool = given.values[0]
            case "type":
                require_type(given.values[0])
            case "name" | "debug":
                pass
            case _:
                return False
        return True

    def put(self, name: str, token: str) -> None:
        """Write a token where it was wanted; raises ToolError."""
        if not self.token and not self.file:
            sys.stdout.write(f"{token}\n")
            return
        place = Path(self.file) if self.file else _in_token_directory(name, self.token)
        try:
            token_files.write(place, token)
        except OSError as error:
            raise ToolError(
                f"Cannot write token to {place}: {error.strerror} (errno={error.errno})"
            ) from None

    def require_place(self, name: str) -> None:
        """Find out whether there is a place for a token before anybody makes one; raises ToolError."""
        if self.token:
            _in_token_directory(name, self.token)


def places(name: str) -> TokenPlaces:
    """Where tokens and keys of who runs the command are; raises ToolError."""
    try:
        return token_places(CondorConfig(os.environ).get)
    except RuntimeError:
        raise ToolError(f"{name}: this account has no home for tokens: set SEC_TOKEN_DIRECTORY") from None


def identity(typed: str) -> str:
    """The word behind -identity; raises WordsError."""
    user, at, domain = typed.partition("@")
    if not user or not at or not domain or not (typed.isascii() and typed.isprintable()) or " " in typed:
        raise WordsError(f"-identity takes USER@DOMAIN, and not '{typed}'")
    return typed


def _level(typed: str) -> str:
    level = typed.upper()
    if level not in LEVELS:
        raise WordsError(
            f"-authz takes one of {', '.join(LEVELS)}, and not {typed}{do_you_mean(level, LEVELS)}"
        )
    return level


def _lifetime(name: str, typed: str) -> int | None:
    if not _NUMBER.fullmatch(typed):
        raise ToolError(f"{name}: Invalid argument for -lifetime: {typed}.")
    seconds = int(typed)
    return seconds if seconds >= 0 else None


def _in_token_directory(name: str, file: str) -> Path:
    if file != Path(file).name or file in {".", ".."}:
        raise ToolError("Token name isn't a plain filename")
    return places(name).tokens / file
