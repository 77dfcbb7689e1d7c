"""condor_ping: as whom a daemon takes us, and what we may do there."""

import os
import socket
import sys
from typing import Final

import msgspec

from kettle.client.connections.condor_config import CondorConfig
from kettle.client.connections.pool_file import PoolFile
from kettle.client.errors import ClientError
from kettle.client.short_lived import ShortLivedClient
from kettle_services.condor.arguments.daemon_types import require_type
from kettle_services.condor.arguments.grammar import Option, TypedOption, understood
from kettle_services.condor.connections.pool_client import client_of
from kettle_services.condor.errors import ToolError, WordsError, do_you_mean
from kettle_services.condor.printing import options
from kettle_services.condor.printing.options import PRINTING, Printing
from kettle_services.condor.printing.ping_answers import (
    ALLOW,
    FORMS,
    LEVELS,
    NOP,
    NUMBER_OF_NOP,
    NUMBERS,
    Answer,
    Daemon,
    Token,
    ad,
)
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


class _Wanted(msgspec.Struct):
    """What was typed."""

    printing: Printing
    form: str = ""
    role: str = "schedd"
    name: str = ""
    pool: str = ""
    config: str = ""
    tokens: list[str] = []


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
    daemon = Daemon(_shown(wanted), _method(client.pool), _encryption(client.pool))
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
        wanted.printing.show(lambda _: [ad(answer, daemon) for answer in answers])
    else:
        FORMS[wanted.form](answers, daemon)
    return 0 if all(answer.right.allowed for answer in answers) else 1


def _take(name: str, wanted: _Wanted, given: TypedOption) -> None:
    match given.name:
        case "":
            typed = given.values[0]
            wanted.tokens += [ALLOW, *LEVELS] if typed.upper() == "ALL" else [typed]
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


def _token(typed: str, role: str) -> Token:
    word = typed.upper()
    if word.isdecimal():
        named = {str(number): level for level, number in NUMBERS.items()} | {str(NUMBER_OF_NOP): ALLOW}
        if word in named:
            return Token(typed, level=named[word])
        raise _unknown(typed, ())
    if word == NOP or word.startswith(f"{NOP}_"):
        word = word.removeprefix(NOP).removeprefix("_") or ALLOW
    if word == ALLOW or word in LEVELS:
        return Token(typed, level=word)
    if word.startswith("DC_") or not typed.replace(".", "").replace("_", "").isalpha():
        raise _unknown(typed, LEVELS)
    of, dot, verb = typed.rpartition(".")
    if dot and of != role:
        raise ToolError(f"condor_ping: {typed} is a command of the {of}: condor_ping -type {of} {verb}")
    return Token(typed, command=verb)


def _unknown(typed: str, known: tuple[str, ...]) -> ToolError:
    return ToolError(f'ERROR: Could not understand TOKEN "{typed}".{do_you_mean(typed.upper(), known)}')


def _asked(client: ShortLivedClient, wanted: _Wanted, tokens: list[Token]) -> list[Answer]:
    """One question for all tokens."""
    name = wanted.name or (socket.gethostname() if wanted.role == "startd" else "")
    levels = [token.level for token in tokens if token.level and token.level != ALLOW]
    commands = [token.command for token in tokens if token.command]
    found = client.run(
        lambda pool: pool.rights.at(
            wanted.role, name="" if wanted.role == "schedd" else name, levels=levels, commands=commands
        )
    )
    if client.pool.token:
        from kettle.client.held_rights import as_held

        found = as_held(client.pool, found)
    rights = {right.command or right.level: right for right in found.rights}
    rights[ALLOW] = RightAt(
        level=ALLOW, allowed=True, rule="everybody may ask who has a credential of the pool"
    )
    return [Answer(token, rights[token.command or token.level], found.identity) for token in tokens]


def _shown(wanted: _Wanted) -> str:
    return f"{wanted.role} {wanted.name}" if wanted.name else f"local {wanted.role}"


def _method(pool: PoolFile) -> str:
    """
    How the pool knows us, in HTCondor's words: by a token, by a file that only this account can read, as a job, or not at all.
    """
    if pool.nats_url.startswith("job:"):
        return "JOB"
    if pool.token:
        return "TOKEN"
    return "FS" if pool.credentials else "ANONYMOUS"


def _encryption(pool: PoolFile) -> str:
    return "TLS" if pool.ca or pool.nats_url.startswith("tls://") else ""
