"""
An issuer as the gateway, its client, asks it: for its description, for tokens, and for others in their place.
"""

import asyncio
import secrets
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Final, Protocol, TypeVar
from urllib.parse import quote, urlsplit

import msgspec

from kettle.auth.tokens.checking.issuers import Issuer
from kettle.auth.tokens.checking.parsing import parse
from kettle.auth.tokens.checking.verification import verify
from kettle.auth.tokens.keys.discovery import FetchError, metadata_urls
from kettle.auth.tokens.keys.key_cache import KeyCache
from kettle.auth.tokens.verified import TokenError, VerifiedToken
from kettle.auth.tokens.verifier import Verifier
from kettle_services.gateway.sessions.oidc.flow import (
    LoginFailed,
    Pending,
    ProviderMetadata,
    authorization_url,
)
from kettle_services.gateway.sessions.oidc.tokens import (
    Given,
    IssuerCredential,
    TokenAnswer,
    UnreachableError,
)
from kettle_services.gateway.settings import LoginIssuer

_FRESH_S: Final = 3600.0
"""For so long the description of an issuer is not asked for again."""
_AGAIN_S: Final = 5.0
"""For so long an issuer that does not describe itself is not asked again, however many want to sign in."""
_JSON: Final = {"Accept": "application/json"}
Decoded = TypeVar("Decoded")


class Asks(Protocol):
    """
    How issuers are asked; `kettle.auth.tokens.keys.fetching.HttpFetcher` refuses places that must not be asked.
    """

    async def document(self, url: str) -> bytes:
        """See `HttpFetcher.document`."""
        ...

    async def form(
        self, url: str, fields: Mapping[str, str], headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        """See `HttpFetcher.form`."""
        ...


class _Refused(msgspec.Struct, frozen=True):
    """The answer of an endpoint that says no (RFC 6749 section 5.2)."""

    error: str = ""


class Provider:
    """Asks one issuer."""

    def __init__(
        self,
        settings: LoginIssuer,
        secret: str,
        asks: Asks,
        keys: KeyCache,
        verifier: Verifier,
        back: str,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        `secret`: empty for a public client; `verifier`: what believes tokens that are shown to the gateway; `back`: the address to
        which the issuer sends a browser back.
        """
        self.settings: Final = settings
        self._secret = secret
        self._asks = asks
        self._keys = keys
        self._verifier = verifier
        self._back = back
        self._clock = clock
        self._known: tuple[float, ProviderMetadata] | None = None
        self._failed: tuple[float, str] | None = None
        self._asking = asyncio.Lock()

    @property
    def name(self) -> str:
        """What people call it."""
        return self.settings.name or urlsplit(self.settings.issuer).hostname or self.settings.issuer

    async def begin(self, target: str) -> tuple[str, Pending]:
        """Where a browser is sent to sign in, and what it has to come back with; raises LoginFailed."""
        pending = Pending(
            issuer=self.settings.issuer,
            state=secrets.token_urlsafe(32),
            nonce=secrets.token_urlsafe(32),
            verifier=secrets.token_urlsafe(48),
            target=target,
        )
        url = authorization_url(
            await self.metadata(),
            pending,
            client=self.settings.client,
            back=self._back,
            scopes=" ".join(self.settings.scopes),
            more=self._for_whom(),
        )
        return url, pending

    async def finish(self, code: str, pending: Pending) -> IssuerCredential:
        """What the issuer gives for a code; raises LoginFailed."""
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._back,
            "code_verifier": pending.verifier,
            **self._for_whom(),
        }
        try:
            answer = await self._tokens(fields)
            known = await self._identity(answer.id_token)
        except UnreachableError as error:
            raise LoginFailed(str(error)) from error
        if known.claims.get("nonce") != pending.nonce:
            raise LoginFailed(f"{self.settings.issuer} has answered another login than this one: begin again")
        given = await self._given(answer, known)
        return IssuerCredential(
            given, self._renewed, issuer=self.settings.issuer, client=self.settings.client
        )

    async def revoke(self, given: Given) -> None:
        """
        Have the issuer renew nothing any more, where it has a way to; that it does not answer changes nothing here.
        """
        try:
            place = (await self.metadata()).revocation_endpoint
            if place and given.refresh_token:
                await self._form(place, {"token": given.refresh_token, "token_type_hint": "refresh_token"})
        except (LoginFailed, UnreachableError):
            return

    async def metadata(self) -> ProviderMetadata:
        """
        What it says of itself; what was said within the hour is not asked again, and what it did not say not at once. Raises
        LoginFailed.
        """
        async with self._asking:
            now = self._clock()
            if self._known is not None and now - self._known[0] < _FRESH_S:
                return self._known[1]
            if self._failed is not None and now - self._failed[0] < _AGAIN_S:
                raise LoginFailed(self._failed[1])
            try:
                known = await self._described()
            except LoginFailed as error:
                self._failed = self._clock(), str(error)
                raise
            self._known, self._failed = (self._clock(), known), None
            return known

    async def _described(self) -> ProviderMetadata:
        issuer = self.settings.issuer
        failures: list[str] = []
        for url in metadata_urls(issuer):
            try:
                found = msgspec.json.decode(await self._asks.document(url), type=ProviderMetadata)
            except FetchError as error:
                failures.append(str(error))
                continue
            except msgspec.MsgspecError as error:
                failures.append(f"{url} does not describe an issuer at which one signs in: {error}")
                continue
            if found.issuer != issuer:
                raise LoginFailed(f"{url} describes {found.issuer[:200]!a}, and not {issuer}")
            return found
        raise LoginFailed("; ".join(failures))

    def _for_whom(self) -> dict[str, str]:
        words = {"resource": self.settings.resource, "audience": self.settings.audience}
        return {name: word for name, word in words.items() if word}

    async def _tokens(self, fields: Mapping[str, str]) -> TokenAnswer:
        """Raises LoginFailed: it says no; UnreachableError: it says nothing."""
        place = (await self.metadata()).token_endpoint
        status, body = await self._form(place, fields)
        if status >= 500 or status == 429:
            raise UnreachableError(f"{self.settings.issuer} answers with the status {status}")
        if status != 200:
            error = _decoded(body, _Refused).error[:100]
            raise LoginFailed(f"{self.settings.issuer} gives no token: {ascii(error)[1:-1] or status}")
        return _decoded(body, TokenAnswer)

    async def _form(self, place: str, fields: Mapping[str, str]) -> tuple[int, bytes]:
        said, headers = dict(fields), dict(_JSON)
        methods = (await self.metadata()).token_endpoint_auth_methods_supported
        if self._secret and "client_secret_basic" in methods:
            pair = f"{quote(self.settings.client, safe='')}:{quote(self._secret, safe='')}"
            headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        else:
            said["client_id"] = self.settings.client
            if self._secret:
                said["client_secret"] = self._secret
        try:
            return await self._asks.form(place, said, headers)
        except FetchError as error:
            raise UnreachableError(str(error)) from error

    async def _identity(self, token: str) -> VerifiedToken:
        """Who has signed in, by the ID token; raises LoginFailed: it is not good, or for another client."""
        if not token:
            raise LoginFailed(
                f"{self.settings.issuer} says nothing of who has signed in: ask for the scope openid"
            )
        client, now = self.settings.client, time.time()
        issuer = Issuer(url=self.settings.issuer, audiences=(client,), any_audience=False)
        try:
            parsed = parse(token)
            keys = await self._keys.keys(issuer.url, parsed.header.get("kid"), now)
            found = verify(parsed, issuer, keys, now)
        except TokenError as error:
            raise LoginFailed(
                f"{self.settings.issuer} has sent an ID token that cannot be believed: {error}"
            ) from error
        if found.claims.get("azp", client) != client:
            raise LoginFailed(f"{self.settings.issuer} has sent an ID token of another client")
        return found

    async def _given(self, answer: TokenAnswer, known: VerifiedToken, former: Given | None = None) -> Given:
        """
        What is kept: the access token if it is one that the pool believes, else the ID token.

        Raises LoginFailed: the two are about different people.
        """
        token, ends = answer.id_token, known.expires
        try:
            access = await self._verifier.verify(answer.access_token, time.time())
        except TokenError:
            pass  # many issuers have access tokens that only they themselves can read
        else:
            if (access.issuer, access.subject) != (known.issuer, known.subject):
                raise LoginFailed(f"{self.settings.issuer} has sent tokens of two people")
            token, ends = answer.access_token, access.expires
        session = known.claims.get("sid")
        return Given(
            token=token,
            ends=float(ends),
            refresh_token=answer.refresh_token or (former.refresh_token if former else ""),
            subject=known.subject,
            session=session if isinstance(session, str) else "",
        )

    async def _renewed(self, former: Given) -> Given:
        """The next tokens of the same person; raises like `Renew`."""
        answer = await self._tokens({"grant_type": "refresh_token", "refresh_token": former.refresh_token})
        if answer.id_token:
            known = await self._identity(answer.id_token)
            if known.subject != former.subject:
                raise LoginFailed(f"{self.settings.issuer} has renewed the sign-in of somebody else")
            return await self._given(answer, known, former)
        try:
            access = await self._verifier.verify(answer.access_token, time.time())
        except TokenError as error:
            raise LoginFailed(
                f"{self.settings.issuer} has renewed no token that the pool knows: {error}"
            ) from error
        if (access.issuer, access.subject) != (self.settings.issuer, former.subject):
            raise LoginFailed(f"{self.settings.issuer} has renewed the sign-in of somebody else")
        return msgspec.structs.replace(
            former,
            token=answer.access_token,
            ends=float(access.expires),
            refresh_token=answer.refresh_token or former.refresh_token,
        )


def _decoded(body: bytes, kind: type[Decoded]) -> Decoded:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.MsgspecError as error:
        raise LoginFailed(f"the issuer's answer cannot be read: {error}") from error
