"""Who may send a command: compares its declaration with the caller that the bus reports."""

from typing import Any, Final

from kettle.bus.ports import RefusedError, Served
from kettle_wire.codes import RefusalCode
from kettle_wire.endpoint import Caller
from kettle_wire.identity import Identity

_KINDS: Final = {"daemon": "the service {}", "worker": "the startd {}"}


def require_caller(served: Served[Any, Any], caller: Identity) -> None:
    """Raise RefusedError (`denied`) for a caller whom the endpoint is not for."""
    if _admitted(served, caller):
        return
    endpoint = served.endpoint
    role, verb = endpoint.role, endpoint.verb
    who = _KINDS.get(caller.kind, "{}").format(caller.name)
    if Caller.ADMINISTRATOR in endpoint.callers:
        names = ", ".join(sorted(served.administrators())) or "nobody"
        raise RefusedError(
            RefusalCode.DENIED,
            f"{who} is no administrator of this {role}; those are: {names} ([{role}] administrators)",
        )
    meant = ", ".join(sorted(endpoint.callers))
    raise RefusedError(RefusalCode.DENIED, f"{who} may not ask a {role} for {verb}, which is for: {meant}")


def _admitted(served: Served[Any, Any], caller: Identity) -> bool:
    callers = served.endpoint.callers
    match caller.kind:
        case "daemon":
            return caller.name in callers
        case "worker":
            return Caller.STARTD in callers
        case "visitor":
            return Caller.VISITOR in callers
        case "user":
            return Caller.USER in callers or (
                Caller.ADMINISTRATOR in callers and caller.name in served.administrators()
            )
