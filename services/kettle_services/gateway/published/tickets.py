"""
Tickets with which machines publish the services of running jobs here.

Who asks is the shadow of an attempt; whether that runs and whose it is, is asked of the job's queue, so that the shadow's word gives
nobody more than the queue has recorded.
"""

import secrets
import time
from pathlib import Path
from typing import Any, Final

from kettle.auth.tokens.checking.issuers import Issuer
from kettle.auth.tokens.checking.parsing import parse
from kettle.auth.tokens.checking.verification import verify
from kettle.auth.tokens.issuing.derived import Grant, issue
from kettle.auth.tokens.issuing.key_store import KeyStore, KeyStoreError
from kettle.auth.tokens.verified import TokenError
from kettle.bus.ports import Asks, BusError, RefusedError, Served
from kettle.published.ticket import (
    AUDIENCE,
    LIFETIME_S,
    SCOPE,
    Ticket,
    TicketRefusedError,
    claims_of,
    issuer_of,
    ticket_of,
)
from kettle.runtime import SettingsError
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.gateway import ADMIT_SERVICES, AdmitServices, ServicesAdmitted
from kettle_wire.commands.schedd import NEEDED_TOKENS, AskNeededTokens
from kettle_wire.identity import Identity

_FILE: Final = "ticket-keys.json"
_DEADLINE_S: Final = 5.0
"""For the queue's answer; the machine asks again."""


class TicketOffice:
    """Makes tickets, and takes them."""

    def __init__(self, bus: Asks, directory: Path, *, pool: str, url: str, ca: str) -> None:
        """
        `directory`: of the keys that sign them; `url`: where machines find this gateway, whose certificate may come from `ca`.

        Raises SettingsError: the keys cannot be used.
        """
        self._bus = bus
        self._store: Final = KeyStore(directory / _FILE)
        self._issuer: Final = Issuer(url=issuer_of(pool), audiences=(AUDIENCE,), profiles=("plain",))
        self.url: Final = url
        self.ca: Final = ca
        try:
            self._ring = self._store.ring(int(time.time()))
        except (KeyStoreError, OSError) as error:
            raise SettingsError(f"the keys for tickets of published services: {error}") from error

    def served(self) -> list[Served[Any, Any]]:
        """The endpoint with its handler."""
        return [Served(ADMIT_SERVICES, self.admit)]

    async def admit(self, request: AdmitServices, caller: Identity) -> ServicesAdmitted:
        """A ticket for an attempt that runs; `not_running`, `denied`, `unavailable`."""
        if caller.access_point:
            raise RefusedError(
                RefusalCode.DENIED,
                "jobs of an access point that has joined publish no services: it vouches for its people to its own queue alone",
            )
        owner = await self._owner(request)
        now = int(time.time())
        grant = Grant(
            issuer=self._issuer.url,
            subject=owner,
            audience=(AUDIENCE,),
            scopes=(SCOPE,),
            lifetime=LIFETIME_S,
            profile="plain",
            claims=claims_of(request.schedd, request.job, request.attempt),
        )
        if self._ring.needs_key(now, self._store.times):
            self._ring = self._store.ring(now)
        key = self._ring.signing(now, self._store.times)
        text = issue(grant, key, now, secrets.token_urlsafe(16))
        return ServicesAdmitted(url=self.url, ca=self.ca, ticket=text, left=float(LIFETIME_S))

    async def check(self, text: str) -> Ticket:
        """
        What a ticket says that somebody shows, if that attempt still runs.

        Raises:
            TicketRefusedError: it is none of ours, or is over.
            BusError: the queue does not say whether the job runs.
        """
        now = time.time()
        try:
            found = verify(parse(text), self._issuer, self._ring.key_set(), now)
        except TokenError as error:
            raise TicketRefusedError(error.code, str(error)) from error
        ticket = ticket_of(found.subject, found.scopes, float(found.expires), found.claims)
        asked = AdmitServices(schedd=ticket.schedd, job=ticket.job, attempt=ticket.attempt)
        try:
            owner = await self._owner(asked)
        except RefusedError as refusal:
            if refusal.code != RefusalCode.NOT_RUNNING:
                raise
            raise TicketRefusedError("job.not_running", str(refusal)) from refusal
        if owner != ticket.owner:
            raise TicketRefusedError("token.no_rights", f"job {ticket.job} is not {ticket.owner}'s any more")
        return ticket

    async def _owner(self, of: AdmitServices) -> str:
        """Whose an attempt is, if it runs; raises BusError."""
        asked = AskNeededTokens(job=of.job, attempt=of.attempt)
        try:
            return (await self._bus.call(NEEDED_TOKENS, of.schedd, asked, deadline=_DEADLINE_S)).owner
        except RefusedError:
            raise
        except BusError as error:
            raise RefusedError(
                RefusalCode.UNAVAILABLE, f"the schedd {of.schedd} does not say whose job it is: {error}"
            ) from error
