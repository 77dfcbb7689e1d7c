"""
Refusals over HTTP: `application/problem+json` (RFC 9457) with a stable `code`, and the headers that belong to
the status.
"""

from typing import Final

from aiohttp import web

from kettle.http.problems import bearer_challenge, document_of, header_text, problem_response
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


def problem(refusal: Denied, *, oauth: bool = False) -> web.Response:
    """The answer; `oauth`: with the `error` that programs of OAuth look for."""
    more: dict[str, str] = {}
    if oauth:
        more["error"] = _OAUTH.get(refusal.code, "invalid_grant")
        more["error_description"] = header_text(str(refusal))
    headers: dict[str, str] = {}
    if refusal.status == 401:
        headers["WWW-Authenticate"] = _challenge(refusal)
    elif refusal.code == Code.TOKEN_NO_RIGHTS:
        headers["WWW-Authenticate"] = 'Bearer realm="kettle", error="insufficient_scope"'
    document = document_of(refusal.status, refusal.code, str(refusal))
    return problem_response(document, more=more, headers=headers, retry_after=refusal.retry_after)


def _challenge(refusal: Denied) -> str:
    if refusal.code.startswith("client."):
        return 'Basic realm="kettle"'
    return bearer_challenge("" if refusal.code == Code.TOKEN_ABSENT else str(refusal))
