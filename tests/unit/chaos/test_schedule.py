"""What is broken when follows from the seed and from what there is."""

import pytest

from kettle.testing.chaos.schedule import ALONE, KINDS, MEANING, Targets, chosen, schedule, targeted

TARGETS: Targets = {
    "kill": ["schedd", "startd", "nats", "postgres"],
    "pause": ["schedd", "startd"],
    "clock": ["schedd"],
    "slow": ["schedd>nats", "schedd>postgres"],
    "crash": ["pool"],
}


def test_same_seed_same_schedule() -> None:
    """Two schedules of one seed are equal, to the last number."""
    assert schedule(7, TARGETS, seconds=600.0) == schedule(7, TARGETS, seconds=600.0)


def test_order_of_targets_does_not_matter() -> None:
    """In which order services came up changes nothing."""
    turned: Targets = {kind: list(reversed(names)) for kind, names in reversed(list(TARGETS.items()))}
    assert schedule(7, TARGETS, seconds=600.0) == schedule(7, turned, seconds=600.0)


def test_other_seed_other_schedule() -> None:
    """Another seed breaks other things at other times."""
    assert schedule(7, TARGETS, seconds=600.0) != schedule(8, TARGETS, seconds=600.0)


@pytest.mark.parametrize("seed", range(20))
def test_every_target_of_every_kind_is_broken(seed: int) -> None:
    """After as many rounds as the kind with most targets has, each has had its turn."""
    faults = schedule(seed, TARGETS, seconds=400.0, every=2.0)
    wanted = {f"{kind}:{name}" for kind, names in TARGETS.items() for name in names}
    assert wanted == {fault.name for fault in faults}


@pytest.mark.parametrize("seed", range(20))
def test_one_target_is_broken_once_at_a_time(seed: int) -> None:
    """A fault begins when the one before it on the same target is over, and all within the time given."""
    over: dict[str, float] = {}
    for fault in schedule(seed, TARGETS, seconds=300.0, every=1.0, longest=20.0):
        assert over.get(fault.target, 0.0) <= fault.at < 300.0
        over[fault.target] = round(fault.at + fault.seconds, 3)


def test_measures_of_faults() -> None:
    """
    What lasts does so at least a moment and at most as long as was asked for; clocks jump, slow lines are slow.
    """
    for fault in schedule(3, TARGETS, seconds=2000.0, longest=12.0):
        assert (fault.kind in {"pause", "clock", "slow"}) == (0.2 <= fault.seconds <= 12.0)
        assert (fault.kind == "clock") == (30.0 <= abs(fault.offset) <= 900.0)
        assert (fault.kind == "slow") == (fault.delay > 0) == (fault.rate > 0)


def test_patterns_choose() -> None:
    """A kind alone means all of its targets, a target may have wildcards, and no pattern means everything."""
    assert {"kill": ["nats", "postgres", "schedd", "startd"]} == chosen(TARGETS, ["kill"])
    assert {"kill": ["schedd"], "pause": ["schedd"]} == chosen(TARGETS, ["kill:sch*", "pause:schedd"])
    assert {"slow": ["schedd>nats"]} == chosen(TARGETS, ["slow:*>nats"])
    assert {kind: sorted(names) for kind, names in TARGETS.items()} == chosen(TARGETS, [])


def test_patterns_tell_what_is_needed_for_one_kind() -> None:
    """Before anything runs it is known of whom a kind of fault may be wanted."""
    names = ["schedd", "shadow", "startd"]
    assert names == targeted("clock", names, [])
    assert names == targeted("clock", names, ["kill:schedd", "clock"])
    assert ["schedd", "shadow"] == targeted("clock", names, ["kill", "c*:sh*", "clock:schedd"])
    assert [] == targeted("clock", names, ["kill", "pause:*"])


def test_pattern_that_fits_nothing() -> None:
    """A pattern without a target is refused with what there is."""
    with pytest.raises(ValueError, match=r"'kill:shcedd' fits no fault.*kill:schedd"):
        chosen(TARGETS, ["kill:shcedd"])


def test_every_kind_is_explained() -> None:
    """The help text names every kind there is."""
    assert set(KINDS) == set(MEANING)
    assert set(KINDS) > ALONE
