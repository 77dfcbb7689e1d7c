"""The tools: each is a route of the interface, with the names, types and meanings that it declares."""

from typing import Any, Final, Literal

import msgspec

from kettle.schema_generation.json_schema import definitions, plain
from kettle_services.gateway.rest.mcp.answers import LIMIT, MOST, USUAL
from kettle_wire.rest import claims, failures, jobs, log, machines, negotiations, past, pool, standings, usage
from kettle_wire.rest.route import Route

_TEMPLATE: Final = "#/$defs/{name}"
_WITHOUT: Final = frozenset({"at_least", "dry_run", "action", "expect"})
"""Parameters that a model has no use for."""


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a model may ask for."""

    name: str
    route: Route
    action: Literal["", "hold", "release", "remove"] = ""
    """Of `ACT_ON_JOBS`."""
    about: str = ""
    """Instead of what the route says of itself."""

    @property
    def writes(self) -> bool:
        """Whether it changes something, and is therefore confirmed."""
        return self.route.level == "WRITE"


_READ: Final = (
    jobs.LIST_JOBS,
    jobs.LIST_HISTORY,
    jobs.GET_JOB,
    past.GET_WHY,
    past.GET_TIMELINE,
    log.LIST_LOG,
    failures.LIST_FAILURES,
    claims.LIST_CLAIMS,
    pool.LIST_MACHINES,
    machines.GET_MACHINE,
    standings.LIST_USERS,
    negotiations.LIST_NEGOTIATIONS,
    usage.GET_USAGE,
)
_CONFIRMED: Final = "Changes nothing at first: the answer has a token; show it to the person, and call again with it as `confirm`."
TOOLS: Final = {
    tool.name: tool
    for tool in (
        *(Tool(name=route.operation, route=route) for route in _READ),
        Tool(name="hold_jobs", route=jobs.ACT_ON_JOBS, action="hold", about=f"Put jobs on hold, which release_jobs undoes. {_CONFIRMED}"),
        Tool(name="release_jobs", route=jobs.ACT_ON_JOBS, action="release", about=f"Let held jobs run. {_CONFIRMED}"),
        Tool(name="remove_jobs", route=jobs.ACT_ON_JOBS, action="remove", about=f"Remove jobs for good. {_CONFIRMED}"),
        Tool(name="submit_jobs", route=jobs.SUBMIT_JOBS, about=f"Submit a cluster of jobs, as attributes of the job ad. {_CONFIRMED}"),
    )
}  # fmt: skip


def listed() -> list[dict[str, Any]]:
    """The tools as a client is told of them."""
    return [_described(tool) for tool in TOOLS.values()]


def _described(tool: Tool) -> dict[str, Any]:
    said = " ".join((tool.about or tool.route.parameters.__doc__ or "").split())
    schema = _schema(tool)
    return {
        "name": tool.name,
        "description": said,
        "inputSchema": schema,
        "annotations": {
            "readOnlyHint": not tool.writes,
            "destructiveHint": tool.action == "remove",
            "idempotentHint": not tool.writes,
            "openWorldHint": False,
        },
    }


def _schema(tool: Tool) -> dict[str, Any]:
    kinds = [kind for kind in (tool.route.parameters, tool.route.body) if kind is not None]
    roots, found = definitions(kinds, _TEMPLATE)
    properties: dict[str, Any] = {}
    required: list[str] = []
    for root in roots:
        struct = found.pop(str(root["$ref"]).rpartition("/")[2])
        properties |= {name: about for name, about in struct["properties"].items() if name not in _WITHOUT}
        required += [name for name in struct.get("required", []) if name not in _WITHOUT]
    if "limit" in properties:
        properties["limit"] = {**properties["limit"], "default": LIMIT}
    if tool.writes:
        properties["confirm"] = {
            "type": "string",
            "description": "The token of the first answer.",
            "maxLength": 100,
        }
    else:
        properties["max_bytes"] = {
            "type": "integer", "minimum": 1024, "maximum": MOST, "default": USUAL, "description": "Of the answer.",
        }  # fmt: skip
    made = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return plain({**made, "$defs": found} if found else made)
