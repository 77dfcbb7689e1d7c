"""
Credentials that people store for their jobs: what a text is that somebody sends, and whose it is. Pure; the texts themselves are in
`kettle_services.iam.sealed_files`.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec

from kettle.auth.tokens.checking.parsing import parse
from kettle.auth.tokens.verified import TokenError
from kettle_services.iam.domain.refusals import Code, Denied
from kettle_services.iam.domain.sessions import Changes
from kettle_services.iam.domain.state import Register, StoredCredential
from kettle_wire.events.iam import CredentialKind, CredentialRemoved, CredentialStored

MOST: Final = 100
"""Credentials of one person."""


class Credential(msgspec.Struct, frozen=True):
    """What somebody has sent."""

    kind: CredentialKind
    text: str
    """The token, or the refresh token."""

    def __repr__(self) -> str:
        """Without the secret."""
        return f"Credential({self.kind})"


def stream(owner: str, service: str, handle: str) -> str:
    """Where a credential is recorded."""
    return f"credential/{owner}/{service}/{handle}"


def read(text: str) -> Credential:
    """
    A token as it is, or the JSON of an OAuth answer.

    Raises:
        Denied: it is neither; the sentence has nothing of it.
    """
    text = text.strip()
    if text.startswith("{"):
        try:
            answer = msgspec.json.decode(text, type=dict[str, Any])
        except msgspec.MsgspecError:
            raise Denied(
                Code.REQUEST_MALFORMED, "the credential begins as JSON does and is none", status=400
            ) from None
        for name, kind in (("refresh_token", "refresh"), ("access_token", "token")):
            value = answer.get(name)
            if isinstance(value, str) and value:
                return Credential("refresh" if kind == "refresh" else "token", _checked(value))
        raise Denied(
            Code.REQUEST_MALFORMED,
            "the credential is JSON without a refresh_token or an access_token",
            status=400,
        )
    return Credential("token", _checked(text))


def life_left(text: str, longest: float, *, now: float) -> float:
    """
    Seconds for which a stored token is good: as it says itself if it is a JWT, else, and at most, `longest`.

    Raises:
        Denied: it is over.
    """
    try:
        ends = parse(text).claims.get("exp")
    except TokenError:
        return longest
    if not isinstance(ends, int | float):
        return longest
    if ends <= now:
        raise Denied(Code.TOKEN_EXPIRED, "the stored token has expired: store another one", status=400)
    return min(ends - now, longest)


def _checked(text: str) -> str:
    if not text or not all("!" <= char <= "~" for char in text):
        raise Denied(
            Code.REQUEST_MALFORMED,
            "a token is one word of printable ASCII: store it alone, or as the JSON of an OAuth answer",
            status=400,
        )
    return text


def stored(
    register: Register, event: CredentialStored, *, ours: Collection[str], exchanged: Mapping[str, object]
) -> Changes:
    """
    Keep a credential, in the place of the one before.

    `ours`: services whose tokens are signed here; `exchanged`: those with which refresh tokens are exchanged.

    Raises:
        Denied: nothing could be done with it, or there are very many.
    """
    if event.service in ours:
        raise Denied(
            Code.REQUEST_UNKNOWN,
            f"tokens of {event.service} are made for each job, so none is stored: write use_oauth_services = {event.service}",
            status=400,
        )
    if event.kind == "refresh" and event.service not in exchanged:
        has = ", ".join(exchanged) or "none"
        raise Denied(
            Code.REQUEST_UNKNOWN,
            f"iam exchanges no refresh tokens of {event.service} (it does of: {has}); store an access token, or have the"
            " administrator name the service in [iam] oauth_services",
            status=400,
        )
    name = stream(event.owner, event.service, event.handle)
    own = sum(each.owner == event.owner for each in register.all(StoredCredential))
    if register.find(StoredCredential, name) is None and own >= MOST:
        raise Denied(
            Code.TOKEN_TOO_MANY, f"{event.owner} has {MOST} stored credentials; remove some", status=400
        )
    return [(name, event)]


def removed(register: Register, owner: str, service: str, handle: str, *, now: float) -> Changes:
    """Keep one no longer; raises Denied if there is none."""
    found(register, owner, service, handle)
    event = CredentialRemoved(owner=owner, service=service, handle=handle, by=owner, at=now)
    return [(stream(owner, service, handle), event)]


def found(register: Register, owner: str, service: str, handle: str) -> StoredCredential:
    """Somebody's own; raises Denied, and says how one is stored."""
    known = register.find(StoredCredential, stream(owner, service, handle))
    if known is None:
        options = f"-s {service} -H {handle}" if handle else f"-s {service}"
        raise Denied(
            Code.TOKEN_UNKNOWN,
            f"{owner} has stored no credential of {service}{f' with the handle {handle}' if handle else ''}:"
            f" condor_store_cred add-oauth {options} -i FILE; see which: kettle credential list",
            status=404,
        )
    return known
