"""condor_ping: as whom a daemon takes us, and what we may do there."""

import os
import socket
import sys
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from kettle.auth.mapping.levels import Level
from kettle.client.connections.condor_config import CondorConfig
from kettle.client.connections.pool_file import PoolFile
from kettle.client.errors import ClientError
from kettle.client.short_lived import ShortLivedClient
from kettle_services.condor.arguments.daemon_types import require_type
from kettle_services.condor.arguments.grammar import Option, TypedOption, understood
from kettle_services.condor.configuration import version
from kettle_services.condor.connections.pool_client import client_of
from kettle_services.condor.errors import ToolError, WordsError, do_you_mean
from kettle_services.condor.printing import options
from kettle_services.condor.printing.options import PRINTING, Printing
from kettle_wire.ads.types import Ad
from kettle_wire.commands.rights import RIGHTS_AT, RightAt

OPTIONS: Final = PRINTING | {
    "address": Option(takes=1),
    "config": Option(takes=1),
    "debug": Option(letters=True),
    "name": Option(takes=1),
    "pool": Option(takes=1),
    "quiet": Option(),
    "subsystem": Option(takes=1),
    "table": Option(),
    "type": Option(takes=1),
    "verbose": Option(),
}
HELP: Final = {
    "condor_ping": f"""\
usage: condor_ping [options] [TOKEN ...]

As whom a daemon takes you, and whether you may do there what a token stands for: an authorization level such as READ, ALL of
them, a command of Kettle such as submit, or one of HTCondor's DC_NOP commands.  Without one it is WRITE.  The daemon itself
decides, as it does for commands; which rule it was is in -verbose.  The exit status is 1 if one of them is denied.

  -type ROLE             which daemon (schedd): {", ".join(RIGHTS_AT)}
  -name N                if the pool has several
  -quiet                 only the exit status
  -table                 a line for each token
  -verbose               all that is known, with the rule and what is missing
{options.HELP}\
  -pool P                of which pool
  -config FILE           knobs from this file as well
  -debug                 changes nothing here
""",
}
_LEVELS: Final = (
    Level.READ, Level.WRITE, Level.NEGOTIATOR, Level.ADMINISTRATOR, Level.OWNER, Level.CONFIG, Level.DAEMON,
    Level.ADVERTISE_STARTD, Level.ADVERTISE_SCHEDD, Level.ADVERTISE_MASTER,
)  # fmt: skip
"""In the order in which HTCondor tries them for ALL, and has numbered its commands that are for nothing else."""
_NUMBERS: Final = {level.value: 60020 + place for place, level in enumerate(_LEVELS)}
_ALLOW: Final = "ALLOW"
"""What everybody may who is let in at all."""
_NOP: Final = "DC_NOP"
_NUMBER_OF_NOP: Final = 60011
_TITLES: Final = "         Instruction Authentication Encryption Integrity Decision Identity\n"


class _Wanted(msgspec.Struct):
    """What was typed."""

    printing: Printing
    form: str = ""
    role: str = "schedd"
    name: str = ""
    pool: str = ""
    config: str = ""
    tokens: list[str] = []


class _Token(msgspec.Struct, frozen=True):
    """What is tried: a level, or a command of the daemon."""

    typed: str
    level: str = ""
    command: str = ""

    @property
    def number(self) -> int:
        """HTCondor's number of the command that is for nothing but this; 0: it has none."""
        return _NUMBER_OF_NOP if self.level == _ALLOW else _NUMBERS.get(self.level, 0)


class _Answer(msgspec.Struct, frozen=True):
    """What the daemon says to one token."""

    token: _Token
    right: RightAt
    identity: str


class _Daemon(msgspec.Struct, frozen=True):
    """The daemon that is asked, and what of the connection to it is known."""

    shown: str
    method: str
    encryption: str
    """Empty: there is none."""


def run(name: str, words: list[str]) -> int:
    """Ask, and print."""
    wanted = _Wanted(Printing())
    for given in understood(words, OPTIONS):
        if not wanted.printing.read_option(given):
            _take(name, wanted, given)
    if wanted.form and wanted.printing.said:
        raise WordsError("only one output mode may be specified")
    tokens = [_token(word, wanted.role) for word in wanted.tokens or ["WRITE"]]
    environ = {**os.environ, "CONDOR_CONFIG": wanted.config} if wanted.config else os.environ
    client = client_of(
        CondorConfig(environ), pool=wanted.pool, name=wanted.name if wanted.role == "schedd" else ""
    )
    daemon = _Daemon(_shown(wanted), _method(client.pool), _encryption(client.pool))
    try:
        answers = _asked(client, wanted, tokens)
    except ClientError as error:
        if wanted.form != "quiet":
            sys.stdout.writelines(
                f"{token.typed} failed!  Use -verbose for more information.\n" for token in tokens
            )
            sys.stderr.write(f"{name}: {error}\n")
        return 1
    if wanted.printing.said:
        wanted.printing.show(lambda _: [_ad(answer, daemon) for answer in answers])
    else:
        _FORMS[wanted.form](answers, daemon)
    return 0 if all(answer.right.allowed for answer in answers) else 1


def _take(name: str, wanted: _Wanted, given: TypedOption) -> None:
    match given.name:
        case "":
            typed = given.values[0]
            wanted.tokens += [_ALLOW, *_LEVELS] if typed.upper() == "ALL" else [typed]
        case "quiet" | "table" | "verbose" as form:
            if wanted.form not in {"", form}:
                raise WordsError("only one output mode may be specified")
            wanted.form = form
        case "type" | "subsystem":
            wanted.role = require_type(given.values[0])
            if wanted.role not in RIGHTS_AT:
                raise ToolError(f"{name}: no {wanted.role} here takes commands of people")
        case "name" | "pool" | "config" as option:
            setattr(wanted, option, given.values[0])
        case "address":
            raise ToolError(f"{name}: daemons have no addresses here; name one with -type and -name")
        case _:
            pass


def _token(typed: str, role: str) -> _Token:
    word = typed.upper()
    if word.isdecimal():
        named = {str(number): level for level, number in _NUMBERS.items()} | {str(_NUMBER_OF_NOP): _ALLOW}
        if word in named:
            return _Token(typed, level=named[word])
        raise _unknown(typed, ())
    if word == _NOP or word.startswith(f"{_NOP}_"):
        word = word.removeprefix(_NOP).removeprefix("_") or _ALLOW
    if word == _ALLOW or word in _LEVELS:
        return _Token(typed, level=word)
    if word.startswith("DC_") or not typed.replace(".", "").replace("_", "").isalpha():
        raise _unknown(typed, _LEVELS)
    of, dot, verb = typed.rpartition(".")
    if dot and of != role:
        raise ToolError(f"condor_ping: {typed} is a command of the {of}: condor_ping -type {of} {verb}")
    return _Token(typed, command=verb)


def _unknown(typed: str, known: tuple[str, ...]) -> ToolError:
    return ToolError(f'ERROR: Could not understand TOKEN "{typed}".{do_you_mean(typed.upper(), known)}')


def _asked(client: ShortLivedClient, wanted: _Wanted, tokens: list[_Token]) -> list[_Answer]:
    """One question for all tokens; the answers are in the order of levels, then commands."""
    name = (
        ""
        if wanted.role == "schedd"
        else wanted.name or (socket.gethostname() if wanted.role == "startd" else "")
    )
    levels = [token.level for token in tokens if token.level and token.level != _ALLOW]
    commands = [token.command for token in tokens if token.command]
    found = client.run(lambda pool: pool.rights.at(wanted.role, name=name, levels=levels, commands=commands))
    rights = {**{right.level: right for right in found.rights if not right.command}}
    by_command = {right.command: right for right in found.rights if right.command}
    anybody = RightAt(level=_ALLOW, allowed=True, rule="everybody may ask who has a credential of the pool")
    return [
        _Answer(
            token,
            by_command[token.command] if token.command else rights.get(token.level, anybody),
            found.identity,
        )
        for token in tokens
    ]


def _shown(wanted: _Wanted) -> str:
    return f"{wanted.role} {wanted.name}" if wanted.name else f"local {wanted.role}"


def _method(pool: PoolFile) -> str:
    """
    How the pool knows us, in HTCondor's words: by a file that only this account can read, as a job, or not at all.
    """
    if pool.nats_url.startswith("job:"):
        return "JOB"
    return "FS" if pool.credentials else "ANONYMOUS"


def _encryption(pool: PoolFile) -> str:
    return "TLS" if pool.ca or pool.nats_url.startswith("tls://") else ""


def _ad(answer: _Answer, daemon: _Daemon) -> Ad:
    yes_or_no = "YES" if daemon.encryption else "NO"
    found: Ad = {
        "AuthCommand": answer.token.number,
        "Authentication": "NO" if daemon.method == "ANONYMOUS" else "YES",
        "AuthMethods": daemon.method,
        "AuthorizationSucceeded": answer.right.allowed,
        "Encryption": yes_or_no,
        "From": daemon.shown,
        "Integrity": yes_or_no,
        "Level": answer.right.level,
        "MyRemoteUserName": answer.identity,
        "Name": answer.token.typed,
        "Result": "ALLOWED" if answer.right.allowed else "DENIED",
        "Rule": answer.right.rule,
    }
    if daemon.encryption:
        found["CryptoMethods"] = daemon.encryption
    if answer.right.missing:
        found["Missing"] = answer.right.missing
    return found


def _sentences(answers: list[_Answer], daemon: _Daemon) -> None:
    encryption, integrity = daemon.encryption or "no encryption", daemon.encryption or "no integrity"
    for answer in answers:
        outcome = "succeeded" if answer.right.allowed else "failed"
        sys.stdout.write(
            f"{answer.token.typed} command using ({encryption}, {integrity}, and {daemon.method}) {outcome}"
            f" as {answer.identity} to {daemon.shown}.\n"
        )


def _table(answers: list[_Answer], daemon: _Daemon) -> None:
    sys.stdout.write(_TITLES)
    security = daemon.encryption or "none"
    for answer in answers:
        decision = "    ALLOW " if answer.right.allowed else "     DENY "
        sys.stdout.write(
            f"{answer.token.typed:>20}{daemon.method:>15}{security:>11}{security:>10}{decision}{answer.identity}\n"
        )


def _paragraphs(answers: list[_Answer], daemon: _Daemon) -> None:
    for answer in answers:
        rows: Mapping[str, str] = {
            "Destination": daemon.shown,
            "Local  Version": version(),
            "Instruction": answer.token.typed,
            "Command": str(answer.token.number),
            "Encryption": daemon.encryption or "none",
            "Integrity": daemon.encryption or "none",
            "Authenticated using": daemon.method,
            "Remote Mapping": answer.identity,
            "Authorized": "TRUE" if answer.right.allowed else "FALSE",
            "Level": answer.right.level,
            "Rule": answer.right.rule,
            **({"Missing": answer.right.missing} if answer.right.missing else {}),
        }
        sys.stdout.writelines(f"{f'{title}:':<28} {value}\n" for title, value in rows.items())
        sys.stdout.write("\n")


def _nothing(_answers: list[_Answer], _daemon: _Daemon) -> None:
    """Only the exit status."""


_FORMS: Final[Mapping[str, Callable[[list[_Answer], _Daemon], None]]] = {
    "": _sentences,
    "table": _table,
    "verbose": _paragraphs,
    "quiet": _nothing,
}
