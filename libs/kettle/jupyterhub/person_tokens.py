"""
In whose name a hub acts: each request about a server shows the token of the person whose server it is, so that a hub has no more
rights in the pool than the people who have signed in at it.

Where the tokens come from:

    the login          the access token of the person's login, from the encrypted `auth_state`, which the hub's authenticator renews
    a command          what a command of the site prints, as `kettle token create` of the person's account
    the hub's account  the private file of the gateway of a personal pool: only for the person whose account the hub runs as
"""

import asyncio
import json
import time
from base64 import urlsafe_b64decode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from kettle.accounts.lookup import own_name
from kettle.jupyterhub.errors import HubError, NoTokenError

_COMMAND_S: Final = 30.0
_STILL_GOOD: Final = 1 / 3
"""A token is renewed when so much of its life is left."""
_LEAST_LEFT_S: Final = 5.0


class TokenSource(Protocol):
    """Where the token of one person comes from."""

    async def token(self) -> str:
        """One that is good now; raises NoTokenError."""
        ...


class OwnAccountToken:
    """The private file of a gateway that runs with the same account as the hub."""

    def __init__(self, home: Path, *, user: str) -> None:
        self._file = home / "gateway" / "token"
        self._user = user

    async def token(self) -> str:
        """See `TokenSource`."""
        if self._user != own_name():
            raise NoTokenError(
                f"this hub runs servers of {own_name()} only, whose account it has, and you are {self._user}: set token_from or "
                "token_command of c.KettleSpawner"
            )
        try:
            return (await asyncio.to_thread(self._file.read_text)).strip()
        except OSError as error:
            raise NoTokenError(
                f"the gateway's private file cannot be read: {error.strerror}: {self._file}"
            ) from error


class CommandToken:
    """What a command prints."""

    def __init__(self, command: Sequence[str], *, user: str) -> None:
        """`{username}` in a word of the command is the name at the hub."""
        self._command = [word.replace("{username}", user) for word in command]
        self._user = user
        self._kept = ""

    async def token(self) -> str:
        """See `TokenSource`; the one before is shown again until a third of its life is left."""
        if not is_due(self._kept, time.time()):
            return self._kept
        made = await asyncio.create_subprocess_exec(
            *self._command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
        )
        try:
            async with asyncio.timeout(_COMMAND_S):
                printed, _ = await made.communicate()
        except TimeoutError as error:
            made.kill()
            await made.wait()
            raise NoTokenError(
                f"the command that gives {self._user} a token has not ended in time"
            ) from error
        self._kept = printed.decode("utf-8", "replace").strip()
        if made.returncode or not self._kept:
            self._kept = ""
            raise NoTokenError(
                f"the command that gives {self._user} a token has exited with code {made.returncode}: see the hub's log"
            )
        return self._kept


class LoginToken:
    """The access token of the person's login."""

    def __init__(
        self,
        state: Callable[[], Awaitable[Mapping[str, Any] | None]],
        renew: Callable[[], Awaitable[None]],
        *,
        user: str,
        name: str = "access_token",
        renewing: asyncio.Lock | None = None,
    ) -> None:
        """
        `state`: what the hub has kept of the login; `renew`: has the authenticator renew that; `name`: of the token in it; `renewing`:
        is held by who renews this login, because a refresh token may be good for once.
        """
        self._state = state
        self._renew = renew
        self._user = user
        self._name = name
        self._renewing = renewing or asyncio.Lock()

    async def token(self) -> str:
        """See `TokenSource`."""
        async with self._renewing:
            token = await self._of_login()
            if is_due(token, time.time()):
                token = await self._renewed(token)
        if not token:
            raise NoTokenError(
                f"the hub has no access token of {self._user}: c.Authenticator.enable_auth_state = True is needed, and a login after it"
            )
        if ends_of(token)[1] < time.time():
            raise NoTokenError(
                "your login has ended and could not be renewed: sign in again; what runs goes on"
            )
        return token

    async def _renewed(self, token: str) -> str:
        """The next one; as long as there is none, the one before while it is good."""
        try:
            await self._renew()
        except HubError:
            if token and time.time() < ends_of(token)[1]:
                return token
            raise
        return await self._of_login()

    async def _of_login(self) -> str:
        found = (await self._state() or {}).get(self._name)
        return found if isinstance(found, str) else ""


def is_due(token: str, now: float) -> bool:
    """Whether another one should be had; one that does not say its end is never due."""
    return not token or now >= due_at(token)


def due_at(token: str) -> float:
    """When another one should be had, in seconds since the epoch."""
    begins, ends = ends_of(token)
    if ends == float("inf"):
        return ends
    return ends - max((ends - begins) * _STILL_GOOD, _LEAST_LEFT_S)


def ends_of(token: str) -> tuple[float, float]:
    """From when to when a JWT says that it is good; one that says nothing, or is none, always is."""
    body = token.split(".")[1] if token.count(".") == 2 else ""
    try:
        claims = json.loads(urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        ends = float(claims["exp"])
    except (ValueError, KeyError, TypeError):
        return 0.0, float("inf")
    begins = claims.get("iat")
    return float(begins) if isinstance(begins, int | float) else ends - 600.0, ends
