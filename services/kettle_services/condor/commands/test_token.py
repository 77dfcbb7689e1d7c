"""condor_test_token: a token as an issuer would make it, to try out what the pool would make of it."""

import getopt
import os
import re
import sys
import time
from typing import Final

import msgspec

from kettle_services.condor.errors import ToolError, WordsError

HELP: Final = {
    "condor_test_token": """\
usage: condor_test_token --issuer URL --scope SCOPES [options]

Prints a SciToken with which you can try out rules and map files: kettle iam test TOKEN says as whom and with which levels the
pool would take it.  It is signed with a key that is thrown away, and no service accepts it: services here fetch the keys of
issuers themselves and take none from a file, so nobody can put himself in the place of an issuer.

  -i, --issuer URL       whose token it would be
  -S, --scope SCOPES     its scopes, with blanks between
  -s, --subject NAME     whom it would be about; without it nobody
  -a, --audience NAME    for whom it would be; without it for nobody in particular
  -l, --lifetime SECONDS how long it would be valid (3600)
  -c, --cache DIR        not carried out: there is no cache of keys in files
""",
}
_LONG: Final = ("issuer=", "scope=", "subject=", "audience=", "lifetime=", "cache=")
_SHORT: Final = {
    "-i": "--issuer", "-S": "--scope", "-s": "--subject", "-a": "--audience", "-l": "--lifetime", "-c": "--cache",
}  # fmt: skip
_NUMBER: Final = re.compile(r"\d{1,9}")


class _Wanted(msgspec.Struct):
    """What was typed."""

    issuer: str = ""
    scope: str = ""
    subject: str = ""
    audience: str = ""
    lifetime: int = 3600


def run(name: str, words: list[str]) -> int:
    """Make it."""
    wanted = _Wanted()
    try:
        given, others = getopt.gnu_getopt(words, "i:S:s:a:l:c:", _LONG)
    except getopt.GetoptError as error:
        raise WordsError(str(error)) from None
    if others:
        raise WordsError(f"unrecognized arguments: {' '.join(others)}")
    for option, value in given:
        _take(name, wanted, _SHORT.get(option, option).removeprefix("--"), value)
    if not wanted.issuer or not wanted.scope:
        raise WordsError("the following arguments are required: --issuer and --scope")
    sys.stdout.write(f"{_made(wanted)}\n")
    return 0


def _take(name: str, wanted: _Wanted, option: str, value: str) -> None:
    if option == "cache":
        raise ToolError(
            f"{name}: --cache is not carried out: services keep the keys of issuers in memory alone"
        )
    if option == "lifetime":
        if not _NUMBER.fullmatch(value):
            raise WordsError(f"argument --lifetime: invalid int value: '{value}'")
        wanted.lifetime = int(value)
    else:
        setattr(wanted, option, value)


def _made(wanted: _Wanted) -> str:
    from kettle.auth.tokens.issuing.key_store import new_key  # loads cryptography

    now = int(time.time())
    claims: dict[str, object] = {
        "exp": now + wanted.lifetime,
        "iat": now,
        "iss": wanted.issuer,
        "jti": os.urandom(16).hex(),
        "nbf": now,
        "scope": wanted.scope,
        "ver": "scitoken:2.0",
        **({"sub": wanted.subject} if wanted.subject else {}),
        **({"aud": wanted.audience} if wanted.audience else {}),
    }
    return new_key(now).signed(claims, "JWT")
