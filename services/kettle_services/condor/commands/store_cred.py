"""condor_store_cred."""

import os
import sys
from pathlib import Path
from typing import Final

import msgspec

from kettle.client.connections.condor_config import CondorConfig
from kettle.client.errors import ClientError
from kettle_services.condor.arguments.grammar import Option, understood
from kettle_services.condor.connections.pool_client import client_of
from kettle_services.condor.errors import ToolError, WordsError, do_you_mean

OPTIONS: Final = {
    "debug": Option(),
    "h": Option(takes=1),
    "i": Option(takes=1),
    "n": Option(takes=1),
    "s": Option(takes=1),
}
HELP: Final = {
    "condor_store_cred": """\
usage: condor_store_cred add-oauth -s SERVICE [-H HANDLE] -i FILE
       condor_store_cred query-oauth [-s SERVICE [-H HANDLE]]
       condor_store_cred delete-oauth -s SERVICE [-H HANDLE]

Keeps a token of a service for your jobs that say use_oauth_services = SERVICE, enciphered.

  -i FILE     the token alone, or the JSON that the service has answered with; with a refresh_token in it the pool gets
              access tokens for the jobs, if its administrator has named the service; -: standard input
  -s SERVICE  whose
  -H HANDLE   one of several
  -n SCHEDD   changes nothing here: the pool keeps it

query-oauth ends with status 1 if nothing is stored.  Passwords and tickets of Kerberos (add-pwd, add-krb) are not kept:
jobs here need none.
""",
}
_VERBS: Final = ("add-oauth", "query-oauth", "delete-oauth")
_PLAIN: Final = ("add", "query", "delete")


class _Wanted(msgspec.Struct):
    """What was typed."""

    verb: str = ""
    service: str = ""
    handle: str = ""
    file: str = ""


def run(_name: str, words: list[str]) -> int:
    """Store, ask or forget."""
    wanted = _wanted(words)
    client = client_of(CondorConfig(os.environ), pool="", name="")
    try:
        match wanted.verb:
            case "add-oauth":
                text = _read(wanted.file)
                client.run(lambda pool: pool.iam.store_credential(wanted.service, text, handle=wanted.handle))
                sys.stdout.write(f"Credential of {wanted.service} stored.\n")
            case "delete-oauth":
                client.run(lambda pool: pool.iam.remove_credential(wanted.service, handle=wanted.handle))
                sys.stdout.write(f"Credential of {wanted.service} deleted.\n")
            case _:
                found = client.run(lambda pool: pool.iam.credentials()).credentials
                shown = [
                    each
                    for each in found
                    if not wanted.service or (wanted.service, wanted.handle) == (each.service, each.handle)
                ]
                for each in shown:
                    name = f"{each.service}*{each.handle}" if each.handle else each.service
                    sys.stdout.write(f"{name}\t{each.kind}\t{int(each.stored)}\n")
                return 0 if shown else 1
    except ClientError as error:
        raise ToolError(f"ERROR: {error}") from error
    return 0


def _read(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ToolError(f"ERROR: {file} cannot be read: {why}") from error


def _wanted(words: list[str]) -> _Wanted:
    wanted = _Wanted()
    fields = {"s": "service", "h": "handle", "i": "file"}
    for given in understood(words, OPTIONS):
        if given.name == "":
            wanted.verb = _verb(given.values[0]) if not wanted.verb else _too_many(given.values[0])
        elif given.name in fields:
            setattr(wanted, fields[given.name], given.values[0])
    if not wanted.verb:
        raise WordsError(f"say what to do: {', '.join(_VERBS)}")
    if not wanted.service and wanted.verb != "query-oauth":
        raise WordsError(f"{wanted.verb} needs the service: -s SERVICE")
    if wanted.verb == "add-oauth" and not wanted.file:
        raise WordsError("add-oauth needs the credential: -i FILE, or -i - for standard input")
    return wanted


def _verb(word: str) -> str:
    if word in _VERBS:
        return word
    if word.partition("-")[0] in _PLAIN and word.partition("-")[2] in {"", "pwd", "krb"}:
        raise WordsError(
            f"{word}: this pool keeps neither passwords nor tickets of Kerberos; for a token of a service:"
            f" {word.partition('-')[0]}-oauth -s SERVICE"
        )
    raise WordsError(f"{word} is nothing to be done{do_you_mean(word, _VERBS)}")


def _too_many(word: str) -> str:
    raise WordsError(f"{word}: one thing at a time")
