"""How many jobs are on the routes: what their limits are compared with, and what chooses between them."""

from collections.abc import Mapping

import msgspec


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


class Counters(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs of all routes."""

    routes: Mapping[str, RouteCount] = {}
    """By name of the route; one that is missing has no jobs."""
    turn: int = 0
    """How many jobs were routed so far: where it is the turn of one route after the other, it is counted from here."""

    def of(self, route: str) -> RouteCount:
        """The jobs of one route."""
        return self.routes.get(route, _NONE)

    @property
    def jobs(self) -> int:
        """On all routes now."""
        return sum(each.jobs for each in self.routes.values())

    def with_routed(self, route: str) -> "Counters":
        """What they are when one more job has been routed, and waits there."""
        count = self.of(route)
        more = msgspec.structs.replace(count, jobs=count.jobs + 1, idle=count.idle + 1, taken=count.taken + 1)
        return Counters(routes={**self.routes, route: more}, turn=self.turn + 1)
