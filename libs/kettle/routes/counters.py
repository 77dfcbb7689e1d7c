"""How many jobs are on the routes: what their limits are compared with, and what chooses between them."""

from collections.abc import Mapping

import msgspec

from kettle_wire.routes import RefusalKind, RouteRefusal


class RouteCount(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs of one route."""

    jobs: int = 0
    """That are on it now, whatever they do."""
    idle: int = 0
    running: int = 0
    held: int = 0
    taken: int = 0
    """That it was ever given."""
    closed: str = ""
    """One sentence: why it takes none now.  Empty: it takes jobs."""


_NONE = RouteCount()


class VoCount(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs of one VO that have routes, and how many it may have; None: any number."""

    idle: int = 0
    running: int = 0
    max_idle: int | None = None
    max_running: int | None = None

    @property
    def full(self) -> str:
        """
        Why none of its jobs gets a route now, as the end of a sentence that stays the same while it is so; empty: they do.
        """
        if self.max_idle is not None and self.idle >= self.max_idle:
            return f"has as many idle jobs as it may (max_idle = {self.max_idle})"
        if self.max_running is not None and self.idle + self.running >= self.max_running:
            return f"has as many jobs that run or may as it may (max_running = {self.max_running})"
        return ""


class Counters(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs of all routes."""

    routes: Mapping[str, RouteCount] = {}
    """By name of the route; one that is missing has no jobs."""
    vos: Mapping[str, VoCount] = {}
    """By name of the VO; one that is missing has no limits."""
    draining: str = ""
    """Why no job gets a route, as a sentence; empty: jobs do."""
    turn: int = 0
    """How many jobs were routed so far: where it is the turn of one route after the other, it is counted from here."""

    def of(self, route: str) -> RouteCount:
        """The jobs of one route."""
        return self.routes.get(route, _NONE)

    @property
    def jobs(self) -> int:
        """On all routes now."""
        return sum(each.jobs for each in self.routes.values())

    def refusal(self, vo: str) -> RouteRefusal | None:
        """Why no job of a VO gets a route now, whichever; None: it may get one."""
        if self.draining:
            return RouteRefusal("", RefusalKind.DRAINING, self.draining)
        if vo in self.vos and (why := self.vos[vo].full):
            return RouteRefusal("", RefusalKind.VO_FULL, f"the VO {vo} {why}")
        return None

    def with_routed(self, route: str, vo: str = "") -> "Counters":
        """What they are when one more job has been routed, and waits there."""
        count = self.of(route)
        more = msgspec.structs.replace(count, jobs=count.jobs + 1, idle=count.idle + 1, taken=count.taken + 1)
        vos = self.vos
        if vo in vos:
            vos = {**vos, vo: msgspec.structs.replace(vos[vo], idle=vos[vo].idle + 1)}
        return msgspec.structs.replace(self, routes={**self.routes, route: more}, vos=vos, turn=self.turn + 1)
