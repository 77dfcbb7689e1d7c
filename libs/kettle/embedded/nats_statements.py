"""
Tells a running NATS server what its operator says of accounts now.

A server that is to read its whole configuration again ends all connections of people who came with a token, whatever has changed.
One that is told of an account ends those of whom it is not to believe anything any more, and leaves all others alone.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from kettle.auth.trust.server import TELLER_INBOX, Statements, claims_of
from kettle.bus.credentials import Credential
from kettle.embedded.errors import EmbeddedError
from kettle.embedded.nats_listener import NatsListener, probing_client

if TYPE_CHECKING:
    from nats.aio.client import Client

_CONNECT_S: Final = 2
_ANSWER_S: Final = 2.0
_DONE: Final = 200


class _Data(msgspec.Struct, frozen=True):
    code: int = 0
    message: str = ""


class _Error(msgspec.Struct, frozen=True):
    description: str = ""


class _Answer(msgspec.Struct, frozen=True):
    data: _Data | None = None
    error: _Error | None = None


def accounts_to_tell(before: Statements, after: Statements) -> Mapping[str, str] | None:
    """
    What is new about which accounts, by public key; None: more has changed than what is said of accounts that there are.
    """
    if (before.operator, before.system, before.streams) != (after.operator, after.system, after.streams):
        return None
    if before.accounts.keys() != after.accounts.keys():
        return None
    return {key: jwt for key, jwt in after.accounts.items() if jwt != before.accounts[key]}


async def tell(
    url: str, listener: NatsListener | None, teller: Credential, accounts: Mapping[str, str]
) -> None:
    """
    Have the server believe this of accounts, by public key; raises EmbeddedError if it does not say that it does.
    """
    from kettle.bus.nats_driver import RawCredentials, errors  # only who has a server that runs needs it

    client = probing_client(listener)
    try:
        await client.connect(
            url,
            user_credentials=RawCredentials(teller.text()),
            inbox_prefix=TELLER_INBOX,
            allow_reconnect=False,
            connect_timeout=_CONNECT_S,
            error_cb=_quiet,
        )
        for account, jwt in accounts.items():
            await _tell_one(client, account, jwt)
    except (OSError, errors.Error, msgspec.MsgspecError) as error:
        raise EmbeddedError(f"the NATS server cannot be told of its accounts: {error!r}") from error
    finally:
        await client.close()


async def _tell_one(client: "Client", account: str, jwt: str) -> None:
    said = await client.request(claims_of(account), jwt.encode(), timeout=_ANSWER_S)
    answer = msgspec.json.decode(said.data, type=_Answer)
    if answer.data is None or answer.data.code != _DONE:
        why = answer.error.description if answer.error else said.data.decode(errors="replace")
        raise EmbeddedError(f"the NATS server does not take what it is told of an account: {why}")


async def _quiet(_error: Exception) -> None:
    """What goes wrong is raised where it is asked for."""
