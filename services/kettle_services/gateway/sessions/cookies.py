"""
The cookie that a browser shows.

Over HTTPS its name begins with `__Host-`: browsers take such a cookie only from this very host, with `Secure` and for all paths, so no
neighbour's name and no plain connection can set one.  Over plain HTTP, which there is on the loopback interface only, browsers refuse
that prefix, and some of them `Secure` too; there the name has the port in it, because cookies do not keep ports apart.
"""

from typing import Final, Literal

from aiohttp import web

_SAFE: Final = "__Host-"


class Cookie:
    """A cookie for one purpose; no script sees it."""

    def __init__(self, name: str, same_site: Literal["Strict", "Lax"] = "Strict") -> None:
        """`same_site`: Lax is shown also where another site leads here."""
        self._name: Final = name
        self._same_site: Final = same_site

    def name(self, origin: str) -> str:
        """What it is called where the pages have this origin."""
        scheme, _, host = origin.partition("://")
        if scheme == "https":
            return f"{_SAFE}{self._name}"
        return f"{self._name}-{host.rpartition(':')[2]}" if ":" in host else self._name

    def shown(self, request: web.Request, origin: str) -> str:
        """What the browser shows; empty: nothing."""
        return request.cookies.get(self.name(origin), "")

    def give(self, response: web.StreamResponse, origin: str, value: str, max_age: int | None = None) -> None:
        """Have the browser show it from now on: until it is closed, or for `max_age` seconds."""
        response.set_cookie(
            self.name(origin),
            value,
            max_age=max_age,
            path="/",
            secure=origin.startswith("https://"),
            httponly=True,
            samesite=self._same_site,
        )

    def take(self, response: web.StreamResponse, origin: str) -> None:
        """Have the browser forget it."""
        self.give(response, origin, "", max_age=0)


SESSION: Final = Cookie("kettle-session")
