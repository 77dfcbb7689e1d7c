"""
Who shows a token: of this pool itself, of an issuer that it trusts, or one that a key of the pool has signed (IDTOKENS).
"""

import time
from collections.abc import Callable, Collection, Mapping
from typing import Final

import msgspec

from kettle.auth.idtokens import checking
from kettle.auth.idtokens.idtoken import ALGORITHM
from kettle.auth.mapping.levels import Level, closure
from kettle.auth.mapping.policy import Mapped
from kettle.auth.mapping.principals import Principal, groups_of, of_claims, of_token
from kettle.auth.tokens.checking.parsing import parse
from kettle.auth.tokens.verified import TokenError
from kettle.auth.tokens.verifier import Verifier
from kettle.runtime.policy_in_force import PolicyInForce
from kettle_services.iam.domain.bans import require_welcome
from kettle_services.iam.domain.job_tokens import JOB_SESSION
from kettle_services.iam.domain.persons import Person
from kettle_services.iam.domain.refusals import Code, Denied
from kettle_services.iam.domain.rights import by_scopes
from kettle_services.iam.domain.sessions import SESSION, parents_of, require_in_force
from kettle_services.iam.grants import Grants
from kettle_services.iam.record import Record
from kettle_wire.commands.iam import Right
from kettle_wire.events.iam import Grant
from kettle_wire.people import Shown


class Identified(msgspec.Struct, frozen=True, kw_only=True):
    """A token that was checked, and whose it is."""

    principal: Principal
    person: Person


_ASKED: Final = (Level.READ, Level.WRITE, Level.ADMINISTRATOR)
"""The levels of people."""
_OTHERS: Final = "SCITOKENS"
"""The method of tokens of other issuers."""
_OPEN: Final = "open to everybody whom the pool knows, as long as no list says anything else"


class PoolKeys:
    """The keys with which this pool signs IDTOKENS, and the name of its trust domain."""

    def __init__(self, trust_domain: str, secrets: Callable[[], Mapping[str, bytes]]) -> None:
        self.trust_domain: Final = trust_domain
        self.secrets: Final = secrets


class Identification:
    """Checks tokens, and says who their holders are."""

    def __init__(
        self,
        record: Record,
        grants: Grants,
        verifier: Verifier,
        pool_keys: PoolKeys,
        policy: PolicyInForce,
        *,
        url: str,
        reserved: Collection[str],
    ) -> None:
        """
        `url`: the name of this pool as an issuer, and as an audience of its own tokens; `reserved`: names that no token of
        another issuer gives.
        """
        self._reserved = frozenset(reserved)
        self._record: Final = record
        self._grants = grants
        self._verifier = verifier
        self._pool_keys = pool_keys
        self._policy = policy
        self._url = url

    @property
    def trust_domain(self) -> str:
        """The name by which the pool's own IDTOKENS call it."""
        return self._pool_keys.trust_domain

    async def identify(self, token: str) -> Identified:
        """
        Who shows a token.

        Raises:
            Denied: it is not accepted, or says nobody whom the pool knows, or he is banned.
        """
        if not token:
            raise Denied(Code.TOKEN_ABSENT, "no token was shown: sign in with kettle login", status=401)
        try:
            parsed = parse(token)
            if parsed.claims.get("iss") == self._url:
                return self._own(token, parsed.claims)
            if parsed.header.get("alg") == ALGORITHM:
                return self._idtoken(token)
            return await self._foreign(token)
        except TokenError as error:
            raise Denied(Code(error.code), str(error), status=401) from error

    def _own(self, token: str, claims: Mapping[str, object]) -> Identified:
        known = self._grants.verified(token, now=time.time())
        if self._url not in known.audiences:
            raise Denied(Code.TOKEN_AUDIENCE, "the token is for somebody else", status=401)
        principal = Principal(
            method="IDTOKENS",
            text=known.subject,
            claims=claims,
            scopes=known.scopes,
            limits=closure(Level(level) for level in known.levels if level in Level.__members__),
        )
        return self._identified(
            principal,
            known.expires,
            audiences=known.audiences,
            client=known.client,
            job=JOB_SESSION in claims,
        )

    def _idtoken(self, token: str) -> Identified:
        keys = self._pool_keys
        found = checking.verify(token, keys.trust_domain, keys.secrets(), time.time())
        return self._identified(of_claims(found.claims, method="IDTOKENS"), float(found.expires or 0))

    async def grant_of(self, token: str, person: str) -> Grant:
        """
        What a person shows who lets machines in for the own jobs.

        Raises:
            Denied: the token is not accepted, is somebody else's or a job's, or does not permit to submit.
        """
        found = await self.identify(token)
        shown, claims = found.person, found.principal.claims
        if shown.owner != person:
            raise Denied(Code.TOKEN_NO_RIGHTS, f"the token that was shown is not one of {person}")
        if shown.job or Level.WRITE.value not in {right.level for right in shown.rights}:
            raise Denied(
                Code.TOKEN_NO_RIGHTS,
                f"the token that was shown lets {person} have no machines in the pool: it takes one with the level WRITE that is no "
                "job's",
            )
        ours = shown.issuer == self._url
        session = str(claims.get(SESSION, "")) if ours else ""
        return Grant(
            names=shown.names,
            tokens=(*([shown.token] if shown.token else []), *(parents_of(claims) if ours else ())),
            session=session,
            ends=0.0 if session else shown.expires,
        )

    async def _foreign(self, token: str) -> Identified:
        found = await self._verifier.verify(token, time.time())
        principal = of_token(
            issuer=found.issuer,
            subject=found.subject,
            profile=found.profile,
            scopes=found.scopes,
            groups=found.groups,
            claims=found.claims,
        )
        return self._identified(principal, float(found.expires), audiences=found.audience)

    def _identified(
        self,
        principal: Principal,
        expires: float,
        *,
        audiences: tuple[str, ...] = (),
        client: str = "",
        job: bool = False,
    ) -> Identified:
        named = Person(
            owner="",
            method=principal.method,
            issuer=principal.issuer,
            subject=principal.subject,
            token=principal.id,
            rights=(),
            scopes=principal.scopes,
            audiences=audiences,
            expires=expires,
            client=client,
            job=job,
        )
        return self.again(Identified(principal=principal, person=named))

    def again(self, known: Identified) -> Identified:
        """
        Who shows a token that was checked before, by what is in force now.

        Raises:
            Denied: it would not be accepted any more.
        """
        principal, now = known.principal, time.time()
        register = self._record.register
        require_in_force(register, principal.id, principal.claims, ours=principal.issuer == self._url)
        mapped = self._policy.identify(principal, now)
        if mapped.code:
            raise Denied(Code(mapped.code), mapped.why)
        if mapped.domain.lower() != self._policy.domain.lower():
            raise Denied(
                Code.USER_UNMAPPED,
                f"the rules make {mapped.name} of this credential, and people of this pool are in {self._policy.domain}: see "
                "domain of [authorization]",
            )
        if mapped.owner in self._reserved and principal.method == _OTHERS:
            raise Denied(
                Code.USER_UNMAPPED,
                f"the rules make {mapped.owner} of this credential, and nobody becomes the account that runs the pool, or root, by a "
                "token of another issuer",
            )
        by_scope = {right.level: right.because for right in by_scopes(principal.scopes)}
        rights = tuple(
            Right(level=level.value, because=str(decision.because or by_scope.get(level.value, _OPEN)))
            for level in _ASKED
            for decision in [self._policy.decide(principal, mapped, level)]
            if decision.allowed
        )
        person = msgspec.structs.replace(
            known.person,
            owner=mapped.owner,
            groups=mapped.groups,
            accounting_group=mapped.accounting_group,
            shown=_shown(principal, mapped) if self._policy.gives_vos else None,
            given={
                level.value: str(because)
                for level, because in mapped.levels.items()
                if principal.limits is None or level in principal.limits
            },
            rights=rights,
            because=tuple(str(each) for each in mapped.because),
        )
        require_welcome(self._record.register, *person.names, now=now)
        return Identified(principal=principal, person=person)


def _shown(principal: Principal, mapped: Mapped) -> Shown:
    """What is said of a credential; its groups also when nothing may be decided by them."""
    return Shown(
        vo=mapped.vo,
        rule=str(mapped.rule or ""),
        issuer=principal.issuer,
        subject=principal.subject,
        token=principal.id,
        groups=groups_of(principal.claims),
        scopes=principal.scopes,
    )
