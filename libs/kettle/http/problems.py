"""
Refusals over HTTP: `application/problem+json` (RFC 9457) with a stable `code`, and the headers that belong to the status.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from aiohttp import web

from kettle_wire.rest.problem import FieldProblem, Problem

_TITLES: Final = {
    400: "Bad request",
    401: "Not authenticated",
    403: "Not allowed",
    404: "Not found",
    405: "Not this method",
    408: "Too slow",
    409: "Conflict",
    412: "Changed meanwhile",
    413: "Too large",
    415: "Another media type",
    422: "Cannot be done",
    429: "Too many requests",
    503: "Not available",
}


def document_of(
    status: int,
    code: str,
    detail: str,
    *,
    instance: str = "",
    errors: Sequence[FieldProblem] = (),
    trace: str = "",
) -> Problem:
    """The document of a refusal."""
    return Problem(
        type=f"urn:kettle:problem:{code}",
        title=_TITLES.get(status, "Refused"),
        status=status,
        detail=detail,
        code=code,
        instance=instance,
        errors=list(errors),
        trace=trace,
    )


def problem_response(
    problem: Problem,
    *,
    more: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    retry_after: float = 0.0,
) -> web.Response:
    """The answer; `more` are members that other rules want beside ours, `retry_after` seconds."""
    sent = {"Cache-Control": "no-store", **(headers or {})}
    if retry_after:
        sent["Retry-After"] = str(math.ceil(retry_after))
    document: dict[str, Any] = {**msgspec.to_builtins(problem), **(more or {})}
    return web.Response(
        status=problem.status,
        body=msgspec.json.encode(document),
        content_type="application/problem+json",
        headers=sent,
    )


def bearer_challenge(sentence: str) -> str:
    """`WWW-Authenticate` for somebody whose token is refused with a sentence; empty: none was shown."""
    if not sentence:
        return 'Bearer realm="kettle"'
    return f'Bearer realm="kettle", error="invalid_token", error_description="{header_text(sentence)}"'


def header_text(sentence: str) -> str:
    """A sentence as RFC 6750 allows it in a header: printable ASCII without quotes and backslashes."""
    return "".join(c if " " <= c <= "~" and c not in '"\\' else "'" for c in sentence)
