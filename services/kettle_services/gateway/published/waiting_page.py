"""
What a browser shows of a service that cannot be reached for the moment: a page that asks again by itself.
"""

import html
import math
from typing import Final

from aiohttp import web

from kettle_services.gateway.rest.refusals import RequestRefused

_PAGE: Final = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="refresh" content="{seconds}">
<title>Not reached yet</title>
<h1>Not reached yet</h1>
<p>{sentence}.</p>
<p>This page asks again every {seconds} seconds.</p>
</html>
"""


def waits_with_a_page(request: web.Request, refusal: RequestRefused) -> bool:
    """
    Whether a person is about to see a refusal that holds only for now; programs get a problem document, and ask as they like.
    """
    opens = request.method == "GET" and request.headers.get("Sec-Fetch-Mode", "navigate") == "navigate"
    return opens and "text/html" in request.headers.get("Accept", "") and bool(refusal.retry_after)


def waiting_page(refusal: RequestRefused) -> web.Response:
    """The page, with the status and headers that a problem document would have."""
    seconds = math.ceil(refusal.retry_after)
    sentence = html.escape(str(refusal).rstrip("."))
    return web.Response(
        status=refusal.status,
        text=_PAGE.format(seconds=seconds, sentence=sentence),
        content_type="text/html",
        headers={
            "Cache-Control": "no-store",
            "Content-Security-Policy": "default-src 'none'; frame-ancestors 'self'",
            "X-Content-Type-Options": "nosniff",
            "Retry-After": str(seconds),
            **refusal.headers,
        },
    )
