"""What a startd believes of a visitor: what is its own."""

from typing import Any

import pytest

from kettle.bus.callers import require_caller
from kettle.bus.ports import RefusedError, Served
from kettle_services.startd.commands.authorization import (
    may_activate,
    may_confirm,
    may_renew,
    may_request,
)
from kettle_wire.commands.startd import (
    REQUEST_CLAIMS,
    Activate,
    Activation,
    Alive,
    ClaimKey,
    ClaimsDecided,
    Confirm,
    RequestClaims,
)
from kettle_wire.identity import Identity, daemon, user, visitor
from kettle_wire.jobs import JobId
from kettle_wire.worker_reports import ReportKey

US = "ap@physics"
VISITOR = visitor(US)
OWN, OTHER = f"{US}#1", "schedd.schedd#1#1"


def request(**changes: Any) -> RequestClaims:
    usual: dict[str, Any] = {
        "schedd": US,
        "submitter": "alice@physics",
        "claims": [ClaimKey(OWN, "s")],
    }
    return RequestClaims(slot="slot1@m", capability="c", job={}, lease=1.0, **usual | changes)


def activate(shadow: str = US, confirmed: str = OWN) -> Activate:
    key, job = ClaimKey(OWN, "s"), JobId(1, 0)
    one = Activation(key=key, job=job, attempt=1, ad={}, inputs=[], shadow=shadow)
    return Activate(activations=[one], recorded=[ReportKey(confirmed, JobId(1, 0), 1, 1)])


def test_a_visitor_does_what_is_its_own() -> None:
    """Its schedd asks and renews, its shadow activates and confirms."""
    may_request(request(), VISITOR)
    may_renew(Alive(schedd=US, claims=[], deadline=None), VISITOR)
    may_activate(activate(), VISITOR)
    may_confirm(Confirm(recorded=[ReportKey(OWN, JobId(1, 0), 1, 1)]), VISITOR)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"schedd": "schedd"}, "speaks for itself, not for schedd"),
        ({"submitter": "alice"}, "for users of its own, name@physics, not for alice"),
        ({"submitter": "alice@chemistry"}, "not for alice@chemistry"),
        ({"submitter": "group.alice@physics"}, "not for group.alice@physics"),
        ({"claims": [ClaimKey(OWN, "s"), ClaimKey(OTHER, "s")]}, f"the claim {OTHER} is none of {US}'s"),
    ],
)
def test_a_visitor_asks_for_nobody_else(changes: dict[str, Any], says: str) -> None:
    """Whatever the message says, the credential counts."""
    with pytest.raises(RefusedError, match=says):
        may_request(request(**changes), VISITOR)


def test_a_visitor_has_no_part_in_others_claims() -> None:
    """It learns of none, confirms nothing of them, and has files sent by nobody but itself."""
    with pytest.raises(RefusedError):
        may_renew(Alive(schedd="schedd", claims=[], deadline=None), VISITOR)
    with pytest.raises(RefusedError):
        may_activate(activate(shadow="shadow"), VISITOR)
    with pytest.raises(RefusedError):
        may_activate(activate(confirmed=OTHER), VISITOR)
    with pytest.raises(RefusedError):
        may_confirm(
            Confirm(recorded=[ReportKey(OWN, JobId(1, 0), 1, 1), ReportKey(OTHER, JobId(1, 0), 1, 1)]),
            VISITOR,
        )


async def never(_request: RequestClaims, _caller: Identity) -> ClaimsDecided:
    raise AssertionError


@pytest.mark.parametrize(
    "caller", [daemon("shadow"), daemon("startd"), user("alice"), user("schedd")], ids=str
)
def test_the_pools_own_are_held_to_their_roles(caller: Identity) -> None:
    """And a schedd of the pool may name what it likes."""
    with pytest.raises(RefusedError, match="request_claims, which is for: schedd, visitor"):
        require_caller(Served(REQUEST_CLAIMS, never), caller)
    require_caller(Served(REQUEST_CLAIMS, never), daemon("schedd"))
    may_request(request(schedd="schedd", submitter="alice", claims=[ClaimKey(OTHER, "s")]), daemon("schedd"))
