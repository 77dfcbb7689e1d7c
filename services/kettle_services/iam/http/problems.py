"""
Refusals over HTTP: `application/problem+json` (RFC 9457) with a stable `code`, and the headers that belong to
the status.
"""

import math
from typing import Any, Final

import msgspec
from aiohttp import web

from kettle_services.iam.domain.refusals import Code, Denied

_OAUTH: Final = {
    Code.TOKEN_SCOPE: "invalid_scope",
    Code.TOKEN_TARGET: "invalid_target",
    Code.CLIENT_UNKNOWN: "invalid_client",
    Code.CLIENT_EXCHANGE: "unauthorized_client",
    Code.GRANT_UNSUPPORTED: "unsupported_grant_type",
    Code.REQUEST_MALFORMED: "invalid_request",
    Code.REQUEST_TOO_LARGE: "invalid_request",
    Code.TOKEN_IN_QUERY: "invalid_request",
}
"""The `error` of RFC 6749 section 5.2 and RFC 8693 section 2.2.2 for our codes; all others are `invalid_grant`."""
_TITLES: Final = {
    400: "Bad request",
    401: "Not authenticated",
    403: "Not allowed",
    404: "Not found",
    409: "Conflict",
    413: "Too large",
    429: "Too many requests",
    503: "Not available",
}


def problem(refusal: Denied, *, oauth: bool = False) -> web.Response:
    """The answer; `oauth`: with the `error` that programs of OAuth look for."""
    body: dict[str, Any] = {
        "type": f"urn:kettle:problem:{refusal.code}",
        "title": _TITLES.get(refusal.status, "Refused"),
        "status": refusal.status,
        "code": refusal.code,
        "detail": str(refusal),
    }
    if oauth:
        body["error"] = _OAUTH.get(refusal.code, "invalid_grant")
        body["error_description"] = _header_text(str(refusal))
    headers = {"Cache-Control": "no-store"}
    if refusal.status == 401:
        headers["WWW-Authenticate"] = _challenge(refusal)
    elif refusal.code == Code.TOKEN_NO_RIGHTS:
        headers["WWW-Authenticate"] = 'Bearer realm="kettle", error="insufficient_scope"'
    if refusal.retry_after:
        headers["Retry-After"] = str(math.ceil(refusal.retry_after))
    return web.Response(
        status=refusal.status,
        body=msgspec.json.encode(body),
        content_type="application/problem+json",
        headers=headers,
    )


def _challenge(refusal: Denied) -> str:
    if refusal.code.startswith("client."):
        return 'Basic realm="kettle"'
    if refusal.code == Code.TOKEN_ABSENT:
        return 'Bearer realm="kettle"'
    return f'Bearer realm="kettle", error="invalid_token", error_description="{_header_text(str(refusal))}"'


def _header_text(sentence: str) -> str:
    """A sentence as RFC 6750 allows it in a header: printable ASCII without quotes and backslashes."""
    return "".join(c if " " <= c <= "~" and c not in '"\\' else "'" for c in sentence)
