"""Tokens of programs of HTCondor: given to who the bus knows, and to who has asked and was approved."""

import os
import secrets
import time
from typing import TYPE_CHECKING, Final

import msgspec

from kettle_services.iam.domain import token_requests
from kettle_services.iam.domain.bans import require_welcome
from kettle_services.iam.domain.refusals import Code, Denied
from kettle_services.iam.domain.state import Register, TokenRequest, fold
from kettle_services.iam.domain.token_requests import Changes
from kettle_services.iam.record import Record
from kettle_wire.commands.token_requests import FetchedToken, FetchToken
from kettle_wire.events.iam import TokenIssued, TokenRequested

if TYPE_CHECKING:
    from kettle_services.iam.idtokens import IdTokens


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """A request for a token, from wherever it comes."""

    hash: str
    client: str
    identity: str = ""
    """Empty: the daemons of the pool."""
    levels: list[str] = []
    lifetime: int = 0
    requester: str = ""
    address: str = ""


class Asked(msgspec.Struct, frozen=True):
    """What is recorded of a request, and its number."""

    request: TokenRequest
    changes: Changes


class TokenRequests:
    """Decides; what it returns as changes is to be recorded by who asked."""

    def __init__(
        self, record: Record, tokens: "IdTokens", *, domain: str, enabled: bool, waits: float
    ) -> None:
        """
        `domain`: of people who bring none; `enabled`: whether tokens may be asked for; `waits`: seconds for which a request waits
        for its approval.
        """
        self._waits = waits
        self._record: Final = record
        self._tokens = tokens
        self._domain = domain
        self._enabled = enabled

    @property
    def register(self) -> Register:
        """What is true now."""
        return self._record.register

    def identity_of(self, login: str) -> str:
        """Whom a token names as a person of this pool."""
        return f"{login}@{self._domain}"

    async def fetch(self, login: str, request: FetchToken) -> FetchedToken:
        """
        A token for who asks; returns after the commit.

        Raises:
            Denied: he is banned, there is no such level or no such key.
        """
        now = time.time()
        require_welcome(self.register, f"user:{login}", now=now)
        levels = tuple(token_requests.require_levels(request.levels))
        key = self._tokens.require_key(request.key)
        lifetime, token, identity = (
            self._tokens.lifetime(request.lifetime),
            _new_id(),
            self.identity_of(login),
        )
        made = self._tokens.make(identity, levels, token, key, issued=now, lifetime=lifetime)
        expires = float(int(now) + lifetime) if lifetime else 0.0
        event = TokenIssued(
            token=token,
            subject=identity,
            grant="fetch",
            scopes=[level.scope for level in levels],
            expires=expires,
            at=now,
        )
        await self._record.record([(f"issued/{identity}", event)])
        return FetchedToken(token=made, id=token, identity=identity, expires=expires)

    def request(self, wish: Wish) -> Asked:
        """
        Ask for a token, which a rule may approve at once.

        Raises:
            Denied: nobody may ask, too many wait, or there is no such level or no key.
        """
        if not self._enabled:
            raise Denied(Code.TOKENREQUEST_CLOSED, "this pool takes no requests for tokens", status=409)
        now = time.time()
        self._tokens.require_key("")
        levels = token_requests.require_levels(wish.levels)
        event = TokenRequested(
            request=self._number(),
            hash=wish.hash,
            client=wish.client,
            requester=wish.requester,
            address=wish.address,
            identity=wish.identity or f"{token_requests.DAEMONS}@{self._tokens.trust_domain}",
            levels=[level.value for level in levels],
            lifetime=wish.lifetime,
            expires=now + self._waits,
            at=now,
        )
        changes = token_requests.requested(self.register, event)
        made = fold(None, event)
        assert isinstance(made, TokenRequest)
        return Asked(made, [*changes, *self._approved_by_rule(made, now)])

    def approve(self, request: str, client: str, *, by: str, own: str = "") -> Changes:
        """
        Let a token be collected; `own`: only one of this identity, with no more than ordinary levels.

        Raises:
            Denied: no such request waits, its program has another name, or it is for somebody else.
        """
        now = time.time()
        found = token_requests.waiting(self.register, request, now=now)
        if found.client != client:
            raise Denied(
                Code.TOKENREQUEST_UNKNOWN,
                f"request {request} is of {found.client}, and not of {client}: look again before you approve it",
                status=409,
            )
        if own:
            if found.identity != own:
                raise Denied(
                    Code.TOKENREQUEST_LEVEL, f"request {request} is for {found.identity}, and you are {own}"
                )
            token_requests.require_ordinary(found.levels, whose=own)
        return self._approved(found, by=by, now=now)

    def auto_approve(self, netblock: str, *, lifetime: float, by: str) -> tuple[Changes, list[str]]:
        """A rule for a network, and the requests that it approves already; raises Denied for no network."""
        now = time.time()
        changes = token_requests.auto_approval(netblock, lifetime=lifetime, by=by, now=now)
        with_rule = Register()
        for stream, event in changes:
            with_rule.apply(stream, event)
        matching = [
            each
            for each in self.register.all(TokenRequest)
            if not each.token
            and now < each.expires
            and token_requests.rule_for(with_rule, each, self._tokens.trust_domain, now=now)
        ]
        network = changes[0][0].partition("/")[2]
        for each in matching:
            changes += self._approved(each, by=by, rule=network, now=now)
        return changes, [each.request for each in matching]

    def waiting(self, own: str = "") -> list[TokenRequest]:
        """The requests that wait, the oldest first; `own`: those for this identity alone."""
        now = time.time()
        found = [
            each
            for each in self.register.all(TokenRequest)
            if not each.token and now < each.expires and own in {"", each.identity}
        ]
        return sorted(found, key=lambda each: (each.made, each.request))

    async def collect(self, request: str, secret: str, *, address: str) -> str:
        """
        The token of an approved request, empty as long as nobody has approved it; returns after the commit.

        Raises:
            Denied: there is no such request, or the secret is another's.
        """
        now = time.time()
        found = token_requests.collectable(self.register, request, secret, now=now)
        if not found.token:
            return ""
        require_welcome(self.register, f"user:{found.identity.partition('@')[0]}", now=now)
        token = self._tokens.make(
            found.identity,
            found.levels,
            found.token,
            found.key,
            issued=found.approved,
            lifetime=found.lifetime,
        )
        await self._record.record(token_requests.collected(found, address=address, now=now))
        return token

    def _approved(self, found: TokenRequest, *, by: str, rule: str = "", now: float) -> Changes:
        return token_requests.approved(
            found,
            token=_new_id(),
            key=self._tokens.require_key(""),
            lifetime=self._tokens.lifetime(found.wanted),
            by=by,
            rule=rule,
            now=now,
        )

    def _approved_by_rule(self, made: TokenRequest, now: float) -> Changes:
        rule = token_requests.rule_for(self.register, made, self._tokens.trust_domain, now=now)
        return self._approved(made, by=rule.by, rule=rule.netblock, now=now) if rule is not None else []

    def _number(self) -> str:
        while True:
            number = f"{secrets.randbelow(10_000_000):07d}"
            if self.register.find(TokenRequest, token_requests.stream(number)) is None:
                return number


def _new_id() -> str:
    return os.urandom(16).hex()
