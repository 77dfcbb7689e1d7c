"""`/v1/token`, `/v1/revoke` and `/v1/introspect`."""

import re
import time
from typing import Any, Final

import msgspec
from aiohttp import web
from multidict import MultiDict, MultiMapping

from kettle.auth.mapping.levels import Level
from kettle_services.iam.admissions import Admissions
from kettle_services.iam.domain import join_tokens, sessions
from kettle_services.iam.domain.join_tokens import Joining
from kettle_services.iam.domain.refusals import Code, Denied
from kettle_services.iam.domain.rights import Known
from kettle_services.iam.domain.state import ClientRules
from kettle_services.iam.grants import Grants, Wanted
from kettle_services.iam.http.requests import Asked, bearer, client_credentials, form, words
from kettle_services.iam.record import Record
from kettle_wire.commands.iam import Audiences, Scopes, TokenMade
from kettle_wire.iam_http import (
    ACCESS_TOKEN,
    CLIENT_GRANT,
    EXCHANGE_GRANT,
    GRANTS,
    JOIN_GRANT,
    JWT,
    REFRESH_GRANT,
    REFRESH_PREFIX,
)

_KEY: Final = re.compile("U[A-Z2-7]{55}")
"""A public NKey of a user."""
_PEOPLE: Final = re.compile("A[A-Z2-7]{55}")
"""A public NKey that signs for an account."""
_NAME: Final = 253


class TokenEndpoint:
    """Gives tokens, takes them back, and says what they are."""

    def __init__(self, record: Record, grants: Grants, admissions: Admissions) -> None:
        self._record = record
        self._grants = grants
        self._admissions = admissions

    async def token(self, asked: Asked) -> web.Response:
        """All grants."""
        parameters = await form(asked.request)
        match parameters.get("grant_type"):
            case grant if grant == REFRESH_GRANT:
                return await self._refresh(asked, parameters)
            case grant if grant == CLIENT_GRANT:
                return await self._client(asked, parameters)
            case grant if grant == EXCHANGE_GRANT:
                return await self._exchange(asked, parameters)
            case grant if grant == JOIN_GRANT:
                return await self._join(asked, parameters)
            case _:
                raise Denied(
                    Code.GRANT_UNSUPPORTED, f"grant_type has to be one of: {', '.join(GRANTS)}", status=400
                )

    async def _refresh(self, asked: Asked, parameters: MultiMapping[str]) -> web.Response:
        text = _required(parameters, "refresh_token")
        asked.identity = f"session {sessions.parse(text).session[:64]}"
        renewed = await self._grants.for_refresh_token(text, _wanted(asked, parameters))
        return _answer(renewed.made, refresh_token=renewed.refresh)

    async def _client(self, asked: Asked, parameters: MultiMapping[str]) -> web.Response:
        client = self._authenticated(asked, parameters)
        if client is None:
            raise Denied(Code.CLIENT_UNKNOWN, "a client has to show its id and its secret", status=401)
        return _answer(await self._grants.for_client(client, _wanted(asked, parameters)))

    async def _exchange(self, asked: Asked, parameters: MultiMapping[str]) -> web.Response:
        kind = parameters.get("subject_token_type")
        if kind not in {ACCESS_TOKEN, JWT} or "actor_token" in parameters:
            raise Denied(
                Code.REQUEST_MALFORMED,
                f"what can be exchanged is a subject_token of the subject_token_type {ACCESS_TOKEN}, without an actor_token",
                status=400,
            )
        if parameters.get("requested_token_type", ACCESS_TOKEN) not in {ACCESS_TOKEN, JWT}:
            raise Denied(
                Code.REQUEST_MALFORMED, f"the requested_token_type can be {ACCESS_TOKEN}", status=400
            )
        client = self._authenticated(asked, parameters)
        token = _required(parameters, "subject_token")
        made = await self._grants.for_token(token, client, _wanted(asked, parameters))
        return _answer(made, issued_token_type=ACCESS_TOKEN)

    async def _join(self, asked: Asked, parameters: MultiMapping[str]) -> web.Response:
        if sealed := parameters.get("sealed"):
            parameters = MultiDict(self._admissions.opened(sealed))
        parts = join_tokens.parse(_required(parameters, "join_token"))
        asked.identity = f"join token {parts.token[:64]}"
        name, key = _required(parameters, "name"), _required(parameters, "key")
        if len(name) > _NAME or not name.isprintable() or " " in name:
            raise Denied(
                Code.REQUEST_MALFORMED,
                "the name of a machine has no spaces, and 253 characters at most",
                status=400,
            )
        if not _KEY.fullmatch(key):
            raise Denied(Code.REQUEST_MALFORMED, "key has to be the public NKey of a user, U...", status=400)
        joins = parameters.get("joins", "worker")
        if joins not in {"worker", "schedd"}:
            raise Denied(Code.REQUEST_MALFORMED, "joins can be worker or schedd", status=400)
        people = parameters.get("people", "")
        if joins == "schedd" and not _PEOPLE.fullmatch(people):
            raise Denied(
                Code.REQUEST_MALFORMED,
                "people has to be the public NKey with which the access point signs for its people, A...",
                status=400,
            )
        admitted = await self._admissions.join(
            Joining(
                parts=parts,
                name=name,
                key=key,
                owner=parameters.get("owner", ""),
                joins="schedd" if joins == "schedd" else "worker",
                people=people,
                address=asked.address,
            )
        )
        return web.Response(body=msgspec.json.encode(admitted), content_type="application/json")

    async def revoke(self, asked: Asked) -> web.Response:
        """RFC 7009: who has a token may end it; the answer is the same for one that is none."""
        parameters = await form(asked.request)
        token, now = _required(parameters, "token"), time.time()
        register = self._record.register
        try:
            if token.startswith(f"{REFRESH_PREFIX}."):
                session = sessions.session_of(register, sessions.parse(token), now=now)
                changes = sessions.closed(session.session, "revoked", by=session.subject, now=now)
            else:
                known = self._grants.verified(token, now=now)
                changes = sessions.revoked(
                    register, known.token, known.subject, expires=known.expires, by=known.subject, now=now
                )
        except Denied:
            return web.json_response({})
        await self._record.record(changes)
        return web.json_response({})

    async def introspect(self, asked: Asked) -> web.Response:
        """
        RFC 7662, for registered clients and administrators: what a token is, if it is one that is valid.
        """
        parameters = await form(asked.request)
        if self._authenticated(asked, parameters) is None:
            known = self._grants.verified(bearer(asked.request), now=time.time())
            if Level.ADMINISTRATOR not in known.levels:
                raise Denied(
                    Code.TOKEN_NO_RIGHTS,
                    "introspection is for registered clients and administrators",
                    status=403,
                )
        token, now = _required(parameters, "token"), time.time()
        await self._record.shard.committed()
        try:
            if token.startswith(f"{REFRESH_PREFIX}."):
                session = sessions.session_of(self._record.register, sessions.parse(token), now=now)
                described: dict[str, Any] = {
                    "active": True,
                    "sub": session.subject,
                    "scope": " ".join(session.scopes),
                    "exp": int(session.expires),
                    "token_type": "refresh_token",
                }
            else:
                described = _described(self._grants.verified(token, now=now))
        except Denied:
            described = {"active": False}
        return web.json_response(described)

    def _authenticated(self, asked: Asked, parameters: MultiMapping[str]) -> ClientRules | None:
        shown = client_credentials(asked.request, parameters)
        if shown is None:
            return None
        asked.identity = f"client {shown[0][:64]}"
        return sessions.client_of(self._record.register, *shown)


def _described(known: Known) -> dict[str, Any]:
    return {
        "active": True,
        "iss": known.issuer,
        "sub": known.subject,
        "aud": list(known.audiences),
        "client_id": known.client,
        "scope": " ".join(known.scopes),
        "exp": int(known.expires),
        "jti": known.token,
        "token_type": "Bearer",
    }


def _required(parameters: MultiMapping[str], name: str) -> str:
    value = parameters.get(name, "")
    if not value:
        raise Denied(Code.REQUEST_MALFORMED, f"the parameter {name} is missing", status=400)
    return value


def _wanted(asked: Asked, parameters: MultiMapping[str]) -> Wanted:
    audiences = [*parameters.getall("audience", []), *parameters.getall("resource", [])]
    scopes = words(parameters, "scope")
    try:
        # The same limits as over the bus.
        msgspec.convert(scopes, Scopes)
        msgspec.convert(audiences, Audiences)
    except msgspec.ValidationError as error:
        raise Denied(Code.REQUEST_MALFORMED, f"scope or audience: {error}", status=400) from error
    return Wanted(scopes=scopes, audiences=audiences, address=asked.address)


def _answer(made: TokenMade, **more: str) -> web.Response:
    body = {
        "access_token": made.token,
        "token_type": "Bearer",
        "expires_in": max(0, int(made.expires - time.time())),
        "scope": " ".join(made.scopes),
        **more,
    }
    return web.json_response(body, headers={"Cache-Control": "no-store"})
