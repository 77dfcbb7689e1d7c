"""Which jobs flock, and how far."""

import pytest

from kettle_services.schedd.domain.negotiation.flocking import Level, may_flock
from kettle_wire.ads import Ad, Expr


@pytest.mark.parametrize(
    ("ad", "goes"),
    [
        ({}, True),
        ({"WantFlocking": True}, True),
        ({"WantFlocking": False}, False),
        ({"wantflocking": False}, False),
        ({"WantFlocking": Expr("RequestCpus > 1"), "RequestCpus": 2}, True),
        ({"WantFlocking": Expr("RequestCpus > 1"), "RequestCpus": 1}, False),
        ({"WantFlocking": Expr("1 / 0 > 1")}, False),
        ({"FlockTo": "chem"}, True),
        ({"FlockTo": "bio, chem"}, True),
        ({"FlockTo": "bio"}, False),
        ({"FlockTo": ""}, False),
        ({"FlockTo": 1}, False),
        ({"FlockTo": "chem", "WantFlocking": False}, False),
    ],
)
def test_a_job_says_whether_it_goes(ad: Ad, *, goes: bool) -> None:
    """What it does not say, the site's default says; what makes no sense keeps it at home."""
    assert goes == may_flock(ad, "chem", by_default=True)


@pytest.mark.parametrize(
    ("ad", "goes"), [({}, False), ({"WantFlocking": True}, True), ({"FlockTo": "chem"}, False)]
)
def test_where_jobs_stay_by_default_one_has_to_want_it(ad: Ad, *, goes: bool) -> None:
    """FLOCK_BY_DEFAULT is false."""
    assert goes == may_flock(ad, "chem", by_default=False)


class Clock:
    """A level that is looked at by a clock."""

    def __init__(self, patience: float = 60.0, most: int = 3) -> None:
        self.level = Level()
        self._patience, self._most = patience, most

    def look(self, now: float, *, waiting: bool) -> int:
        self.level.look(now, waiting=waiting, patience=self._patience, most=self._most)
        return self.level.pools


def test_one_pool_more_is_asked_each_time_that_jobs_have_waited_long_enough() -> None:
    """
    Waiting from 10 on, 60 s patience: the first at 70, the second at 130, the third at 190; there is no fourth.
    """
    clock = Clock()
    seen = [clock.look(now, waiting=True) for now in (10, 69, 70, 100, 129, 130, 190, 250, 1000)]
    assert [0, 0, 1, 1, 1, 2, 3, 3, 3] == seen


def test_who_is_satisfied_keeps_asking_the_pools_that_were_needed() -> None:
    """The second pool gave: two are asked next time too; then the first alone gives, and then home alone."""
    clock = Clock()
    for now in (0, 60, 120, 180):
        clock.look(now, waiting=True)
    clock.level.offered(2)
    assert [2, 2] == [clock.look(190, waiting=False), clock.look(500, waiting=False)]
    clock.look(600, waiting=True)
    clock.level.offered(1)
    assert 1 == clock.look(610, waiting=False)
    clock.look(700, waiting=True)
    assert 0 == clock.look(710, waiting=False)


def test_a_moment_without_waiting_begins_the_patience_anew() -> None:
    """Jobs that come and go quickly at home go nowhere."""
    clock = Clock()
    seen: list[int] = []
    for start in range(0, 600, 50):
        seen += [clock.look(start, waiting=True), clock.look(start + 49, waiting=False)]
    assert {0} == set(seen)
