"""Who may send a command: compares its declaration with the caller that the bus reports."""

from typing import Any, Final

from kettle.bus.ports import Authorize, RefusedError, Served
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.log import READ_FRAMES
from kettle_wire.endpoint import Caller, Endpoint
from kettle_wire.identity import Identity

_OF_QUEUES: Final = {"schedd": "{}", "shadow": "{}", READ_FRAMES.role: "schedd.{}"}
"""The roles of which each queue has its own, and how its name is in theirs."""
_KINDS: Final = {"daemon": "the service {}", "worker": "the startd {}"}


def require_caller(served: Served[Any, Any], caller: Identity, authorize: Authorize | None = None) -> None:
    """
    Raise RefusedError (`denied`) for a caller whom the endpoint is not for. `authorize` decides about people.
    """
    endpoint = served.endpoint
    if caller.kind == "user" and endpoint.callers & {Caller.USER, Caller.ADMINISTRATOR}:
        if why := (authorize or administrators_only)(served, caller):
            raise RefusedError(RefusalCode.DENIED, why)
        return
    if _admitted(served, caller):
        return
    who = _KINDS.get(caller.kind, "{}").format(caller.name)
    if Caller.ADMINISTRATOR in endpoint.callers:
        raise RefusedError(RefusalCode.DENIED, _is_none(served, who))
    meant = ", ".join(sorted(endpoint.callers))
    raise RefusedError(
        RefusalCode.DENIED, f"{who} may not ask a {endpoint.role} for {endpoint.verb}, which is for: {meant}"
    )


def require_own_queue(endpoint: Endpoint[Any, Any], name: str, caller: Identity) -> None:
    """
    Raise RefusedError (`denied`) for an access point that has joined and asks the queue, shadow or log of another; `name`: of
    the service that is asked. The server does not let it through either.
    """
    own = caller.access_point
    if own and endpoint.role in _OF_QUEUES and name != _OF_QUEUES[endpoint.role].format(own):
        raise RefusedError(
            RefusalCode.DENIED,
            f"the service {caller.name} may not ask the {endpoint.role} {name} for {endpoint.verb}: it is of the access point {own}",
        )


def administrators_only(served: Served[Any, Any], caller: Identity) -> str:
    """
    What decides about people where nothing else does: each may do what is for everybody, administrators the rest.
    """
    if Caller.USER in served.endpoint.callers or caller.name in served.administrators():
        return ""
    return _is_none(served, caller.name)


def _is_none(served: Served[Any, Any], who: str) -> str:
    role, names = served.endpoint.role, ", ".join(sorted(served.administrators())) or "nobody"
    return f"{who} is no administrator of this {role}; those are: {names} ([{role}] administrators)"


def _admitted(served: Served[Any, Any], caller: Identity) -> bool:
    callers = served.endpoint.callers
    match caller.kind:
        case "daemon":
            return caller.role in callers
        case "worker":
            return Caller.STARTD in callers
        case "visitor":
            return Caller.VISITOR in callers
        case "user":
            return False
