"""Tokens with which machines join, one for each, made just before the machine."""

import hashlib
import secrets
from typing import Final

from kettle.bus.ports import Asks, BusError, RefusedError
from kettle.bus.retryable import retryable
from kettle_services.provisioner.domain.bootstraps import Joining
from kettle_services.provisioner.port import ProviderError
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.iam import CREATE_JOIN_TOKEN, CreateJoinToken
from kettle_wire.iam_http import join_token
from kettle_wire.leases import ErrorClass, Order

_SLACK_S: Final = 600.0
"""So much longer than its machine a credential is valid: the machine's clock may be wrong."""


def new_secret() -> str:
    """A secret of 256 random bits."""
    return secrets.token_urlsafe(32)


class JoinTokens:
    """Asks iam."""

    def __init__(self, bus: Asks, iam: str, deployment: str) -> None:
        self._bus = bus
        self._iam = iam
        self._deployment = deployment

    async def joining(self, order: Order, *, secret: str) -> Joining:
        """
        How the machine of an order joins; nobody else can with it.

        Raises:
            ProviderError: iam refuses, or does not answer; nothing was asked of the provider yet.
        """
        request = CreateJoinToken(
            id=f"{order.lease}.{order.attempt}.{hashlib.sha256(secret.encode()).hexdigest()[:8]}",
            hash=hashlib.sha256(secret.encode()).hexdigest(),
            machine=order.lease,
            owner=order.owner,
            group=order.group,
            life=order.life + _SLACK_S,
        )
        try:
            made = await self._bus.call(CREATE_JOIN_TOKEN, self._iam, request)
        except RefusedError as error:
            raise ProviderError(_class_of(error), f"iam gives no join token: {error}") from error
        except BusError as error:
            raise ProviderError(ErrorClass.TRANSIENT, f"iam gives no join token: {error}") from error
        return Joining(made.url, join_token(made.token, secret, made.pin), self._deployment)


def _class_of(refusal: RefusedError) -> ErrorClass:
    """
    What a refusal of iam concerns: the one lease, as a name that is taken or a person who is banned; all of them, where a provisioner
    may not ask at all; or nothing for long.
    """
    if retryable(refusal):
        return ErrorClass.TRANSIENT
    if refusal.code in {RefusalCode.DENIED, RefusalCode.NOT_PERMITTED}:
        return ErrorClass.CONFIG
    return ErrorClass.REQUEST
