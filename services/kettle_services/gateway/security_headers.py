"""
What every answer over HTTP tells a browser: to take it for what it is said to be, to carry nothing in it out, and to put it into no
page of others.  The pages say themselves what they allow.
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from aiohttp import web

_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def add_security_headers(application: "web.Application") -> None:
    """Have all answers of an application say so."""

    async def say(_request: "web.Request", response: "web.StreamResponse") -> None:
        for name, value in _HEADERS.items():
            response.headers.setdefault(name, value)

    application.on_response_prepare.append(say)
