"""Servers as a hub wants and sees them, whatever they are made of in the pool."""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Annotated, Final, Literal, Protocol

import msgspec

ServerState = Literal["requested", "queued", "starting", "ready", "degraded", "stopping", "ended"]
"""The words of sessions."""

SERVICE: Final = "notebook"
"""The name of the service that a server publishes."""
SECRETS: Final = "kettle-hub-secrets.json"
"""The file of a server's job with what nobody else may know: variables of its environment, as a JSON object."""
_MARK: Final = re.compile(r"[A-Za-z0-9_.@:-]*")


class ServerSize(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a server takes; None: what the profile says."""

    cpus: Annotated[int, msgspec.Meta(ge=1, le=100_000)] | None = None
    memory: Annotated[int, msgspec.Meta(ge=1, le=10**9)] | None = None
    """MiB."""
    disk: Annotated[int, msgspec.Meta(ge=1, le=10**9)] | None = None
    """MiB."""
    gpus: Annotated[int, msgspec.Meta(ge=0, le=10_000)] | None = None


class ServerOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A server that somebody wants."""

    mark: str
    """
    Which server of which hub it is: `HUB/USER/SERVER`. There is one job of a mark at most.
    """
    profile: str
    size: ServerSize
    image: str = ""
    """Empty: that of the profile."""
    command: Sequence[str] = ()
    """The single-user server with its arguments."""
    environment: Mapping[str, str] = {}
    """Recorded with the job."""
    secrets: Mapping[str, str] = {}
    """Variables that are recorded nowhere."""
    tokens: Sequence[str] = ()
    """Services whose tokens its job has, as `SERVICE` or `SERVICE*HANDLE`."""
    key: str
    """Made once for each order: a repeat makes no second server."""

    def __repr__(self) -> str:
        """Without the secrets."""
        return f"ServerOrder({self.mark})"


class ServerSeen(msgspec.Struct, frozen=True, kw_only=True):
    """How far a server is."""

    state: ServerState
    reason: str = ""
    """One sentence: why it waits, what it does, or how it has ended."""
    job: str = ""
    """The job that it is now; empty: there is none."""
    exit_code: int = 0
    """With `ended`."""
    is_stuck: bool = False
    """It comes back only if somebody does something about it: its job is on hold."""

    @property
    def is_over(self) -> bool:
        """Whether it never comes back."""
        return self.state == "ended"


class OfferedProfile(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of server that people may choose."""

    name: str
    title: str = ""
    about: str = ""
    cpus: int = 1
    memory: int = 1024
    """MiB."""
    gpus: int = 0
    image: str = ""


class PoolServers(Protocol):
    """The servers of a pool.  All methods raise GatewayUnreachableError and GatewayRefusedError."""

    async def profiles(self, token: str) -> Sequence[OfferedProfile]:
        """Those that this person may choose, the usual one first."""
        ...

    async def start(self, order: ServerOrder, token: str) -> str:
        """Have a server; its id.  One of the same mark that was left over is ended first."""
        ...

    def news(self, id_: str, token: str) -> AsyncGenerator[ServerSeen]:
        """What becomes of it, from its beginning; ends when it is over."""
        ...

    async def look(self, id_: str, token: str) -> ServerSeen:
        """How far it is now."""
        ...

    async def last_words(self, id_: str, token: str) -> str:
        """The end of what it has written to its standard error; empty: nothing that is known."""
        ...

    async def stop(self, id_: str, token: str) -> None:
        """Have it end; one that is over already is no error."""
        ...


def mark_of(hub: str, user: str, server: str) -> str:
    """The mark of a server; other characters than those of names are written as numbers."""
    return "/".join("".join(_plain(char) for char in part) for part in (hub, user, server))


def _plain(char: str) -> str:
    return char if _MARK.fullmatch(char) else f"+{ord(char):x}+"
