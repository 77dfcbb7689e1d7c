"""condor_token_create."""

import os
import time
from typing import Final

from kettle.auth.idtokens.idtoken import IdTokenClaims, create
from kettle.auth.idtokens.places import TokenPlaces
from kettle.auth.idtokens.pool_key import POOL, KeyFileError, read_key, signing_secret
from kettle_services.condor.arguments.grammar import Option, understood
from kettle_services.condor.arguments.tokens import LIMITS, PLACE, TokenWords, identity, places
from kettle_services.condor.errors import ToolError, WordsError

OPTIONS: Final = (
    LIMITS | PLACE | {"debug": Option(letters=True), "identity": Option(takes=1), "key": Option(takes=1)}
)
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


def run(name: str, words: list[str]) -> int:
    """Make it."""
    wanted, whose, key = TokenWords(), "", POOL
    for given in understood(words, OPTIONS):
        match given.name:
            case "identity":
                whose = identity(given.values[0])
            case "key":
                key = given.values[0] or POOL
            case _ if not wanted.read(name, given):
                raise WordsError(f"Invalid command line argument: {given.values[0]}")
            case _:
                pass
    if not whose:
        raise WordsError("-identity is needed: the user@domain whose token it is to be")
    wanted.require_place(name)
    wanted.put(name, _made(places(name), whose, key, wanted))
    return 0


def _made(where: TokenPlaces, whose: str, key: str, wanted: TokenWords) -> str:
    claims = IdTokenClaims(
        trust_domain=where.trust_domain,
        identity=whose,
        issued=int(time.time()),
        id=os.urandom(16).hex(),
        lifetime=wanted.lifetime,
        levels=wanted.levels,
    )
    try:
        return create(claims, key, signing_secret(key, read_key(where.key(key))))
    except KeyFileError as error:
        raise ToolError(f"Failed to generate a token.\nTOKEN:1:{error}", _NOT_MADE) from None
    except ValueError as error:
        raise ToolError(f"Failed to generate a token.\nPASSWD:1:{error}", _NOT_MADE) from None
