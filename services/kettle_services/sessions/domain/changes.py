"""What an owner may have otherwise of a session that goes on."""

from typing import Any

import msgspec

from kettle_services.sessions.domain.creation import (
    NotPossible,
    limit_refusal,
    sharing_refusal,
    workers_refusal,
)
from kettle_services.sessions.domain.profiles import Profile
from kettle_services.sessions.domain.session import InteractiveSession
from kettle_wire.commands.sessions import ChangeInteractive
from kettle_wire.sessions import SessionTarget

Changes = tuple[dict[str, Any], list[str]]
"""Fields of the target, and what they are in words."""


def changed_target(
    session: InteractiveSession, wanted: ChangeInteractive, profile: Profile | None
) -> tuple[SessionTarget, str]:
    """
    What is wanted of the session then, and what of it is new as a sentence has it; `profile`: its own, if it is there still.

    Raises NotPossible: it has no workers, its profile does not let it, or it is to be shared with what is nobody.
    """
    fields: dict[str, Any] = {}
    said: list[str] = []
    for part in (_workers(session, wanted, profile), _limits(wanted, profile), _sharing(wanted)):
        fields |= part[0]
        said += part[1]
    what = "; ".join(said) or "as many workers as were said"
    return msgspec.structs.replace(session.target, **fields), what


def _workers(session: InteractiveSession, wanted: ChangeInteractive, profile: Profile | None) -> Changes:
    workers, adapt = wanted.workers, wanted.adapt
    if workers is None and adapt is None:
        return ({"adapt": None} if wanted.fixed else {}), []
    if session.plan.worker is None:
        raise NotPossible(f"session {session.name} has no workers that could be counted")
    if adapt is not None:
        if adapt.minimum > adapt.maximum:
            raise NotPossible(
                f"adapt: the smallest number ({adapt.minimum}) is larger than the largest ({adapt.maximum})"
            )
        for number in (adapt.minimum, adapt.maximum):
            if refusal := workers_refusal(profile, number):
                raise NotPossible(refusal)
        return {"adapt": adapt}, [f"from {adapt.minimum} to {adapt.maximum} workers, as its load wants"]
    assert workers is not None, "one of the two was said"
    if refusal := workers_refusal(profile, workers):
        raise NotPossible(refusal)
    return {"adapt": None, "workers": workers}, [f"{workers} workers"]


def _limits(wanted: ChangeInteractive, profile: Profile | None) -> Changes:
    fields: dict[str, Any] = {}
    for name in ("life", "idle"):
        value: float | None = getattr(wanted, name)
        if value is None:
            continue
        usual: float = getattr(profile, name) if profile is not None else 0.0
        if refusal := limit_refusal(usual, value, name):
            raise NotPossible(refusal)
        fields[name] = value
    return fields, [f"{name} of {value:g} s" for name, value in fields.items()]


def _sharing(wanted: ChangeInteractive) -> Changes:
    if wanted.share is None:
        return {}, []
    if refusal := sharing_refusal(wanted.share):
        raise NotPossible(refusal)
    return {"shared_with": wanted.share}, [f"shared with {', '.join(wanted.share) or 'nobody'}"]
