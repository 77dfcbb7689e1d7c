"""
Who asks over HTTP.

Two credentials are believed: a token of an issuer that the settings name, which rules and map files make a name of, and the
private file of this gateway, which only the account that it runs as can read: who shows its contents is that account.
"""

import hmac
import os
import pwd
import secrets
import time
from pathlib import Path
from typing import Final

import msgspec

from kettle.auth.mapping.levels import Level
from kettle.auth.mapping.policy import AccessPolicy, Mapped
from kettle.auth.mapping.principals import Address, Principal, local, of_token
from kettle.auth.private_files import private_directory, write_private
from kettle.auth.tokens.verified import TokenError
from kettle.auth.tokens.verifier import Verifier
from kettle.http.problems import bearer_challenge
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.rest.problem import ProblemCode

TOKEN_FILE: Final = "token"  # noqa: S105 - the name of the file


class Person(msgspec.Struct, frozen=True):
    """Somebody who was believed."""

    principal: Principal
    mapped: Mapped

    @property
    def name(self) -> str:
        """Who that is in the pool."""
        return self.mapped.owner

    @property
    def is_own_account(self) -> bool:
        """Whether that is the account that this process runs as, by its private file."""
        return self.principal.method == "FS"


def own_token(directory: Path) -> str:
    """The contents of the private file, which is made if it is not there."""
    path = private_directory(directory) / TOKEN_FILE
    try:
        text = path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        text = ""
    if not text:
        text = secrets.token_urlsafe(32)
        write_private(path, text + "\n")
    return text


def own_account() -> str:
    """The name of the account that this process runs as."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


class Persons:
    """Tells who shows a token, and what that person may do."""

    def __init__(self, policy: AccessPolicy, verifier: Verifier | None, token: str) -> None:
        """`token`: the contents of the private file; `verifier`: None if no issuer is believed."""
        self._policy = policy
        self._verifier = verifier
        self._token = token.encode()

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
            principal = local(own_account(), Address(address))
        else:
            principal = await self._of_issuer(token, Address(address))
        mapped = self._policy.identify(principal, time.time())
        if mapped.code:
            raise RequestRefused(403, mapped.code, f"this credential is nobody's here: {mapped.why}")
        return Person(principal, mapped)

    async def _of_issuer(self, token: str, address: Address) -> Principal:
        if self._verifier is None:
            raise _unknown(
                ProblemCode.TOKEN_UNTRUSTED,
                "the token is not that of this gateway's private file, and no issuer is trusted: issuers of [gateway] names those that are",
            )
        try:
            verified = await self._verifier.verify(token, time.time())
        except TokenError as error:
            raise _unknown(error.code, str(error)) from error
        return of_token(
            issuer=verified.issuer,
            subject=verified.subject,
            profile="plain" if verified.profile == "at+jwt" else verified.profile,
            scopes=verified.scopes,
            groups=verified.groups,
            claims=verified.claims,
            address=address,
        )

    def require(self, person: Person, level: Level) -> None:
        """Raises RequestRefused: the person has not the level."""
        found = self._policy.decide_for(person.principal, person.mapped, level, subsystem="gateway")
        if not found.allowed:
            raise RequestRefused(403, ProblemCode.NOT_PERMITTED, found.sentence)


def _unknown(code: str, sentence: str, *, shown: bool = True) -> RequestRefused:
    return RequestRefused(401, code, sentence, challenge=bearer_challenge(sentence if shown else ""))
