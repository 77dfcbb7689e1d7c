"""When a version that was installed is used."""

from kettle_services.master.domain.new_binary import Installed, Rollover, look, pause

OLD, NEW, NEWER = Installed("1", "a"), Installed("2", "b"), Installed("2", "c")
START = Rollover(running=OLD)


def test_what_runs_is_not_new() -> None:
    """As long as the installation is the same nothing happens."""
    assert (START, False) == look(START, OLD, now=10, delay=0)


def test_a_new_version_is_used_when_it_has_settled() -> None:
    """It must have been the same for the whole delay."""
    rollover, due = look(START, NEW, now=10, delay=120)
    assert (NEW, False) == (rollover.waiting, due)
    rollover, due = look(rollover, NEW, now=129, delay=120)
    assert not due
    rollover, due = look(rollover, NEW, now=130, delay=120)
    assert due


def test_one_that_goes_on_changing_is_waited_for() -> None:
    """Every change of any file restarts the delay, also within one version."""
    rollover, _ = look(START, NEW, now=10, delay=120)
    rollover, due = look(rollover, NEWER, now=200, delay=120)
    assert (NEWER, 200, False) == (rollover.waiting, rollover.since, due)


def test_half_an_installation_is_none() -> None:
    """While an installer is at work there is nothing to use, and going back to what runs is nothing new."""
    rollover, _ = look(START, NEW, now=10, delay=5)
    assert (START, False) == look(rollover, None, now=100, delay=5)
    assert (START, False) == look(rollover, OLD, now=100, delay=5)


def test_the_next_look_is_when_it_may_be_due() -> None:
    """What waits is looked at when its delay is over, not a whole interval later."""
    assert pause(START, now=0, interval=300, delay=120) == 300
    rollover, _ = look(START, NEW, now=10, delay=120)
    assert pause(rollover, now=40, interval=300, delay=120) == 90
    assert pause(rollover, now=130, interval=300, delay=120) == 300
