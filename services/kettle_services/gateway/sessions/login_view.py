"""What the page shows on which somebody signs in."""

from collections.abc import Callable

import msgspec
from aiohttp import web


class WayIn(msgspec.Struct, frozen=True):
    """An issuer at which people sign in."""

    name: str
    issuer: str


class LoginView(msgspec.Struct, frozen=True, kw_only=True):
    """The ways in."""

    title: str = "Sign in"
    ways: list[WayIn] = []
    link: str = ""
    """The code of a login link that another page, or nobody, has led to: it waits for the button."""
    target: str = "/"
    """Where the person wants to go."""
    why: str = ""
    """What was refused before, as a sentence; empty: nothing."""


ShowLogin = Callable[[web.Request, LoginView, int], web.Response]
"""Makes the page, with a status."""
