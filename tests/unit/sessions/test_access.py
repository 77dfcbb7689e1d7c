"""Which session somebody means, and who may know of it."""

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from kettle.bus.ports import RefusedError
from kettle_services.sessions.access import SessionAccess
from kettle_services.sessions.domain.session import InteractiveSession, evolve
from kettle_wire.identity import user
from kettle_wire.sessions import SessionTarget

from .one_session import created


def session(id_: str, owner: str, *, shared: str = "", ended: float = 0.0) -> InteractiveSession:
    """One of the name `analysis`."""
    event = msgspec.structs.replace(
        created("dask"),
        session=id_,
        owner=owner,
        name="analysis",
        target=SessionTarget(shared_with=[shared] if shared else []),
    )
    made = evolve(None, event, 1.0)
    assert made is not None
    return msgspec.structs.replace(made, ended=ended)


def access(*sessions: InteractiveSession) -> SessionAccess:
    engine = SimpleNamespace(sessions={each.id: each for each in sessions})
    return SessionAccess(cast("Any", engine), lambda _caller: False, lambda _name: frozenset())


def test_a_name_is_that_of_an_own_session() -> None:
    """
    Who shares a session of the same name with somebody does not get what is meant for that one's own, also if that is over.
    """
    bait = session("bbbbbbbb", "mallory", shared="ada")
    for ended in (0.0, 2.0):
        own = session("aaaaaaaa", "ada", ended=ended)
        assert access(bait, own).shown("analysis", user("ada")) is own


def test_a_session_of_others_is_not_found_by_its_name() -> None:
    """Anybody may share anything with anybody: who wants it says its id."""
    bait = session("bbbbbbbb", "mallory", shared="ada")
    with pytest.raises(RefusedError, match="bbbbbbbb of mallory"):
        access(bait).shown("analysis", user("ada"))
    assert access(bait).shown("bbbbbbbb", user("ada")) is bait


@pytest.mark.parametrize("which", ["analysis", "bbbbbbbb"])
def test_what_is_not_shared_is_not_there(which: str) -> None:
    """Nothing tells that it exists, or whose it is."""
    with pytest.raises(RefusedError) as refused:
        access(session("bbbbbbbb", "mallory", shared="bob")).shown(which, user("ada"))
    assert refused.value.code == "not_found"
    assert "mallory" not in str(refused.value)
