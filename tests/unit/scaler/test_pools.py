import msgspec
import pytest

from kettle_services.scaler.domain.pools import (
    PoolRefused,
    PoolState,
    decide_apply,
    decide_pause,
    decide_resume,
    decide_retire,
    fold_pool,
)
from kettle_wire.events.pool import PoolEvent, PoolPaused
from kettle_wire.worker_pools import Offer, WorkerPool

POOL = WorkerPool(name="cloud", offers=[Offer(name="small", provider="process", cpus=2, memory=1024)])


def after(*decisions: list[PoolEvent], state: PoolState | None = None) -> PoolState:
    """The pool after what was decided."""
    for event in (event for decided in decisions for event in decided):
        state = fold_pool(state, event, 0.0)
    assert state is not None
    return state


APPLIED = after(decide_apply(None, POOL, "d1", by="ada", now=1.0))


def test_the_same_file_again_changes_nothing() -> None:
    """Only another digest makes another version."""
    assert [] == decide_apply(APPLIED, POOL, "d1", by="eve", now=2.0)
    changed = after(decide_apply(APPLIED, POOL, "d2", by="eve", now=2.0), state=APPLIED)
    assert (1, 2) == (APPLIED.version, changed.version)
    assert ("eve", 2.0) == (changed.by, changed.at)


def test_a_paused_pool_makes_nothing_until_it_is_resumed() -> None:
    """A file that is applied meanwhile does not resume it."""
    paused = after(decide_pause(APPLIED, by="ada", now=2.0, reason="maintenance"), state=APPLIED)
    assert not paused.may_grow
    assert not paused.drains
    changed = after(decide_apply(paused, POOL, "d2", by="ada", now=3.0), state=paused)
    assert not changed.may_grow
    assert after(decide_resume(changed, by="ada", now=4.0), state=changed).may_grow
    assert [] == decide_resume(APPLIED, by="ada", now=4.0)


def test_another_reason_is_recorded_and_none_leaves_the_one_that_is_there() -> None:
    """Paused again in the same words changes nothing, and who only says why again does not end a drain."""
    paused = after(decide_pause(APPLIED, by="ada", now=2.0, reason="maintenance", drain=True), state=APPLIED)
    for reason in ("", "maintenance"):
        assert [] == decide_pause(paused, by="bob", now=3.0, reason=reason)
    again = [PoolPaused(reason="no money", drain=True, by="bob", at=3.0)]
    assert again == decide_pause(paused, by="bob", now=3.0, reason="no money")


def test_a_paused_pool_can_be_drained_and_a_drained_one_is_paused_already() -> None:
    """What is said twice is recorded once."""
    paused = after(decide_pause(APPLIED, by="ada", now=2.0), state=APPLIED)
    drained = after(decide_pause(paused, by="ada", now=3.0, drain=True), state=paused)
    assert drained.drains
    assert [] == decide_pause(drained, by="ada", now=4.0, drain=True)
    assert [] == decide_pause(drained, by="ada", now=4.0)


def test_a_retired_pool_is_back_when_its_file_is_applied_again() -> None:
    """Until then it can be neither paused nor resumed."""
    retired = after(decide_retire(APPLIED, by="ada", now=2.0), state=APPLIED)
    assert retired.drains
    assert not retired.may_grow
    assert [] == decide_retire(retired, by="ada", now=3.0)
    with pytest.raises(PoolRefused, match="apply its file again"):
        decide_resume(retired, by="ada", now=3.0)
    back = after(decide_apply(retired, POOL, "d1", by="ada", now=4.0), state=retired)
    assert back.may_grow
    assert not back.drains


def test_offers_of_a_pool_have_names_of_their_own() -> None:
    """Also if no client has looked at the file: a plan knows offers by their names."""
    twice = msgspec.structs.replace(POOL, offers=[*POOL.offers, *POOL.offers])
    with pytest.raises(PoolRefused, match="two offers of the pool cloud are called small"):
        decide_apply(None, twice, "d1", by="ada", now=1.0)
