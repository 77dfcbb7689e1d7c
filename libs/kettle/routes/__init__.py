"""
Routes: where jobs of a compute entrypoint go, and how they are changed for it.

    table = read_routes(text, source="/etc/kettle/routes")
    decision = route(ad, table, counters, now)

A file is compiled once and refused as a whole (`RouteFileError`) with all that is wrong with it.  A decision is pure: the same
ad, routes, counters and time come to the same.
"""

from kettle.routes.checking import RouteReport, check, samples
from kettle.routes.counters import Counters, RouteCount, VoCount
from kettle.routes.decision import Decision, route, vo_of
from kettle.routes.old_syntax import convert_routes
from kettle.routes.reading import RouteFileError, RouteProblem, read_routes
from kettle.routes.table import OnLocalRemove, Route, RouteTable, Selection

__all__ = [
    "Counters",
    "Decision",
    "OnLocalRemove",
    "Route",
    "RouteCount",
    "RouteFileError",
    "RouteProblem",
    "RouteReport",
    "RouteTable",
    "Selection",
    "VoCount",
    "check",
    "convert_routes",
    "read_routes",
    "route",
    "samples",
    "vo_of",
]
