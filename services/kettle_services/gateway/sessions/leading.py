"""How a browser is led on from a page that nobody is to see or keep."""

from typing import Final

from aiohttp import web
from markupsafe import Markup

NO_STORE: Final = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
_CSP: Final = {"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'"}
_PAGE: Final = Markup(
    '<!doctype html><html lang="en"><title>Kettle</title><meta http-equiv="refresh" content="0{}"><p><a href="{}">Go on</a></p></html>'
)


def led(target: str) -> web.Response:
    """Go there at once."""
    return web.Response(status=303, headers={"Location": target, **NO_STORE})


def leading_on(target: str) -> web.Response:
    """
    Go there from a page of ours; empty: to the same page again.

    What another site has led to is not shown our cookie, and neither is what we lead to from there at once; where a page of ours
    leads, it is.
    """
    page = _PAGE.format(f"; url={target}" if target else "", target)
    return web.Response(text=page, content_type="text/html", headers={**NO_STORE, **_CSP})
