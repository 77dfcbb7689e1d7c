"""A command is for those whom its declaration names."""

from contextlib import suppress

import msgspec
import pytest

from kettle.bus.callers import require_caller, require_own_queue
from kettle.bus.ports import RefusedError, Served
from kettle_wire.endpoint import Caller, Endpoint, Repeat
from kettle_wire.identity import Identity, daemon, user, visitor


class Text(msgspec.Struct, frozen=True):
    data: str


async def echo(request: Text, _caller: Identity) -> Text:
    return request


EVERYBODY = [user("ada"), user("eve"), daemon("schedd"), daemon("shadow"), daemon("ada"), visitor("ada")]


def admitted(*callers: Caller) -> list[Identity]:
    endpoint = Endpoint("test", "echo", Text, Text, callers=callers, repeat=Repeat.HARMLESS)
    served = Served(endpoint, echo, lambda: ["ada"])
    found: list[Identity] = []
    for caller in EVERYBODY:
        with suppress(RefusedError):
            require_caller(served, caller)
            found.append(caller)
    return found


@pytest.mark.parametrize(
    ("callers", "found"),
    [
        ([], []),
        ([Caller.USER], [user("ada"), user("eve")]),
        ([Caller.ADMINISTRATOR], [user("ada")]),
        ([Caller.SHADOW, Caller.SCHEDD], [daemon("schedd"), daemon("shadow")]),
        ([Caller.VISITOR], [visitor("ada")]),
        ([Caller.JOB], []),
        ([*Caller], [user("ada"), user("eve"), daemon("schedd"), daemon("shadow"), visitor("ada")]),
    ],
)
def test_only_declared_callers_are_admitted(callers: list[Caller], found: list[Identity]) -> None:
    """
    A daemon is known by its role, whatever people are called; an administrator by the service's settings.
    """
    assert found == admitted(*callers)


@pytest.mark.parametrize("caller", [user("eve"), daemon("ada"), daemon("startd")])
def test_who_is_no_administrator_is_told_who_is(caller: Identity) -> None:
    """The sentence says who may, and where that is set."""
    endpoint = Endpoint("master", "echo", Text, Text, callers=(Caller.ADMINISTRATOR,), repeat=Repeat.HARMLESS)
    with pytest.raises(RefusedError, match="ada, grace") as refused:
        require_caller(Served(endpoint, echo, lambda: ["grace", "ada"]), caller)
    assert "denied" == refused.value.code
    assert "[master] administrators" in str(refused.value)


@pytest.mark.parametrize(
    ("role", "own", "others"),
    [
        ("schedd", "ap1", ["schedd", "ap2", "schedd.ap1"]),
        ("shadow", "ap1", ["shadow", "ap2"]),
        ("log", "schedd.ap1", ["schedd.schedd", "schedd.ap2", "ap1"]),
        ("startd", "ap2", []),
    ],
)
def test_an_access_point_that_has_joined_has_one_queue(role: str, own: str, others: list[str]) -> None:
    """It asks its own, machines as all others do; the pool's own services ask every one."""
    endpoint = Endpoint(role, "echo", Text, Text, callers=(Caller.SHADOW,), repeat=Repeat.HARMLESS)
    require_own_queue(endpoint, own, daemon("shadow", "ap1"))
    for name in others:
        require_own_queue(endpoint, name, daemon("shadow"))
        with pytest.raises(RefusedError, match="of the access point ap1") as refused:
            require_own_queue(endpoint, name, daemon("shadow", "ap1"))
        assert "denied" == refused.value.code


def test_a_command_whose_first_answer_is_kept_has_an_id() -> None:
    """Without one no repeat could be known."""
    with pytest.raises(TypeError, match="no id"):
        Endpoint("test", "echo", Text, Text, callers=(), repeat=Repeat.FIRST_ANSWER)
