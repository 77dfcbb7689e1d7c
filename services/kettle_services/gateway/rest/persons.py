"""
Who asks over HTTP.

Five credentials are believed: a token of an issuer that the settings name, which rules and map files make a name of; a token
of the pool's own iam, which says itself whose it is; the private file of this gateway, which only the account that it runs
as can read: who shows its contents is that account; the name of an account of this machine for which the bus has vouched; and a token
that was given to such an account for some minutes.
"""

import hmac
import secrets
import time
from pathlib import Path
from typing import Final

import msgspec

from kettle.accounts.lookup import own_name
from kettle.auth.mapping.findings import Because, Place
from kettle.auth.mapping.levels import Level
from kettle.auth.mapping.policy import Mapped
from kettle.auth.mapping.principals import Address, Principal, local, of_token
from kettle.auth.private_files import private_directory, write_private
from kettle.auth.tokens.checking.parsing import ParsedToken, parse
from kettle.auth.tokens.verified import JOB_CLAIM, TokenError
from kettle.auth.tokens.verifier import Verifier
from kettle.client.connections.credentials import Holder
from kettle.http.problems import bearer_challenge
from kettle.runtime.people import People
from kettle.runtime.policy_in_force import PolicyInForce
from kettle_services.gateway.rest.access_tokens import PREFIX, AccessTokens
from kettle_services.gateway.rest.credential import Credential
from kettle_services.gateway.rest.local_accounts import LocalAccounts
from kettle_services.gateway.rest.own_iam import OwnIam
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.rest.problem import ProblemCode

TOKEN_FILE: Final = "token"  # noqa: S105 - the name of the file
_UNMAPPED: Final = "user.unmapped"
_BANNED: Final = "user.banned"
_FS: Final = "FS"


class Person(msgspec.Struct, frozen=True):
    """Somebody who was believed."""

    principal: Principal
    mapped: Mapped
    credential: Credential | None = None
    """What was shown; None: nothing that could be shown to anybody else."""

    @property
    def name(self) -> str:
        """Who that is in the pool."""
        return self.mapped.owner

    @property
    def expires(self) -> float | None:
        """When the credential is over, seconds since the epoch; None: never."""
        expires = self.principal.claims.get("exp")
        return float(expires) if isinstance(expires, int | float) else None

    @property
    def is_own_account(self) -> bool:
        """Whether that is the account that this process runs as."""
        return self.principal.method == _FS and self.principal.text == own_name()


def own_token(directory: Path) -> str:
    """
    The contents of the private file, which are others at each start: what was read of it once is worth nothing for long.
    """
    text = secrets.token_urlsafe(32)
    write_private(private_directory(directory) / TOKEN_FILE, text + "\n")
    return text


class Persons:
    """Tells who shows a token, and what that person may do."""

    def __init__(
        self,
        policy: PolicyInForce,
        verifier: Verifier | None,
        iam: OwnIam,
        accounts: LocalAccounts,
        token: str,
        said: People,
    ) -> None:
        """
        `token`: the contents of the private file; `verifier`: None if the settings name no issuer; `said`: what iam says of people,
        whose bans hold also for credentials that it does not know.
        """
        self._said = said
        self._accounts = accounts
        self._policy = policy
        self._verifier = verifier
        self._iam = iam
        self._token = token.encode()
        self.access_tokens: Final = AccessTokens()
        self._reserved = frozenset({"root", own_name()})

    async def holding(self, credential: Credential, address: str) -> Person:
        """Who has shown this, by what is in force now; raises RequestRefused: nobody whom the pool knows."""
        await credential.renew(time.time())
        if credential.account:
            return self.of_account(credential.account, address)
        person = await self.of(credential.token, address)
        return msgspec.structs.replace(person, credential=credential)

    async def of(self, token: str, address: str) -> Person:
        """
        Who shows this token.

        Raises RequestRefused: nobody whom the pool knows.
        """
        if not token:
            raise _unknown(
                ProblemCode.TOKEN_ABSENT,
                "show a token in the header Authorization: Bearer TOKEN",
                shown=False,
            )
        if hmac.compare_digest(token.encode("utf-8", "surrogateescape"), self._token):
            return self._named(local(own_name(), Address(address)))
        if token.startswith(PREFIX):
            return self.of_account(self.account_of(token), address)
        try:
            parsed = parse(token)
        except TokenError as error:
            raise _unknown(
                ProblemCode.TOKEN_UNTRUSTED,
                f"the token is not that of this gateway's private file, and none of an issuer: {error}",
            ) from error
        pool, issuer = await self._iam.pool(), parsed.claims.get("iss")
        if pool is not None and issuer == pool.iam_url:
            holder = await self._iam.holder(pool, token, parsed)
            person = self._of_iam(holder, parsed, pool.iam_url, Address(address))
        else:
            person = self._named(await self._of_issuer(token, Address(address)))
            if pool is not None and issuer in pool.issuers:
                await self._iam.holder(
                    pool, token
                )  # only iam knows whom it has banned, and what it has withdrawn
        if JOB_CLAIM in person.principal.claims:
            raise RequestRefused(
                403,
                ProblemCode.NOT_PERMITTED,
                "this is the token of a running job, which is for what its description asks for: show one of your own (kettle login)",
            )
        return msgspec.structs.replace(person, credential=Credential(token=token))

    def account_of(self, token: str) -> str:
        """The account that was given one of our own tokens; raises RequestRefused: none, or it is over."""
        account = self.access_tokens.account(token, time.time())
        if not account:
            raise _unknown(
                ProblemCode.TOKEN_UNTRUSTED,
                "this is no token of this gateway's, or is none any more: ask for another one",
            )
        return account

    def of_account(self, name: str, address: str) -> Person:
        """
        An account of this machine that has proved on the bus that it is that.

        Raises RequestRefused: it may not use the pool, or not any more.
        """
        if not self._accounts.may_come(name):
            raise RequestRefused(
                403,
                _UNMAPPED,
                f"{name} is no account of this machine that may use the pool, or is none any more",
            )
        return self.of_owner(name, address)

    def of_owner(self, name: str, address: str = "") -> Person:
        """
        Who has a job that runs, as an account; raises RequestRefused: that one is banned, or the rules make nobody of it.
        """
        person = self._named(local(name, Address(address)))
        self._require_not_banned(name)
        own = msgspec.structs.replace(person.mapped, owner=name, domain=self._policy.domain)
        return Person(person.principal, own)  # the bus knows accounts by their names, and no map changes them

    def _named(self, principal: Principal) -> Person:
        """Raises RequestRefused: the rules make nobody of it, or somebody whom no token may be."""
        mapped = self._policy.identify(principal, time.time())
        if mapped.code:
            raise RequestRefused(403, mapped.code, f"this credential is nobody's here: {mapped.why}")
        if mapped.domain.lower() != self._policy.domain.lower():
            raise RequestRefused(
                403,
                _UNMAPPED,
                f"the rules make {mapped.name} of this credential, and people of this pool are in {self._policy.domain}: see domain of "
                "[authorization]",
            )
        if mapped.owner in self._reserved and principal.method != _FS:
            raise RequestRefused(
                403,
                _UNMAPPED,
                f"the rules make {mapped.owner} of this credential, and nobody becomes the account that runs the pool, or root, by a token "
                "of another issuer",
            )
        self._require_not_banned(mapped.owner)
        return Person(principal, mapped)

    def _require_not_banned(self, owner: str) -> None:
        """Raises RequestRefused: iam has banned this person."""
        if banned := self._said.banned(owner):
            raise RequestRefused(403, _BANNED, f"{owner}@{self._policy.domain} {banned}")

    def _of_iam(self, holder: Holder, parsed: ParsedToken, url: str, address: Address) -> Person:
        """Somebody as the pool's iam knows him: it has asked the rules already."""
        levels = [Level(each.level) for each in holder.levels if each.level in Level.__members__]
        principal = Principal(
            method="IDTOKENS",
            text=holder.subject,
            claims=parsed.claims,
            scopes=tuple(holder.scopes),
            limits=frozenset(levels),
            address=address,
        )
        said = Because(Place(url), "what it says of the holder of this token")
        mapped = Mapped(
            owner=holder.subject,
            domain=self._policy.domain,
            levels=dict.fromkeys(levels, said),
            because=(said,),
        )
        return Person(principal, mapped)

    async def _of_issuer(self, token: str, address: Address) -> Principal:
        if self._verifier is None:
            raise _unknown(
                ProblemCode.TOKEN_UNTRUSTED,
                "the token is not that of this gateway's private file nor of the pool's iam, and no other issuer is trusted: issuers of "
                "[gateway] names those that are",
            )
        try:
            verified = await self._verifier.verify(token, time.time())
        except TokenError as error:
            raise _unknown(error.code, str(error)) from error
        return of_token(
            issuer=verified.issuer,
            subject=verified.subject,
            profile=verified.profile,
            scopes=verified.scopes,
            groups=verified.groups,
            claims=verified.claims,
            address=address,
        )

    def may(self, person: Person, level: Level) -> bool:
        """
        Whether the person has the level; the account that the pool runs as administers it, because it can read all keys.
        """
        if level is Level.ADMINISTRATOR and person.is_own_account:
            return True
        return self._policy.decide(person.principal, person.mapped, level).allowed

    def require(self, person: Person, level: Level) -> None:
        """Raises RequestRefused: the person has not the level."""
        if not self.may(person, level):
            found = self._policy.decide(person.principal, person.mapped, level)
            raise RequestRefused(403, ProblemCode.NOT_PERMITTED, found.sentence)


def _unknown(code: str, sentence: str, *, shown: bool = True) -> RequestRefused:
    return RequestRefused(401, code, sentence, challenge=bearer_challenge(sentence if shown else ""))
