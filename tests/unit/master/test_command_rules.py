"""Whom a command means, who may give it, and what a change of settings can do at once."""

import msgspec
import pytest

from kettle_services.master.domain.command_rules import AT_RESTART, chosen, needs_restart
from kettle_services.master.domain.start_order import manner
from kettle_services.master.settings import MasterSettings

LISTED = ("collector", "schedd", "schedd.ap1", "schedd.ap1#2", "startd")


@pytest.mark.parametrize(
    ("names", "found", "unknown"),
    [
        ([], list(LISTED), []),
        (["startd"], ["startd"], []),
        (["SCHEDD"], ["schedd", "schedd.ap1", "schedd.ap1#2"], []),
        (["schedd.ap1"], ["schedd.ap1"], []),
        (["startd", "collector"], ["collector", "startd"], []),
        (["startd", "stratd", "nats"], ["startd"], ["stratd", "nats"]),
    ],
)
def test_a_name_is_an_entry_or_a_role(names: list[str], found: list[str], unknown: list[str]) -> None:
    """A role means all of its entries, the list's order is kept, and what means nothing is told."""
    assert (found, unknown) == chosen(names, LISTED)


def test_what_needs_a_restart_is_named() -> None:
    """Times are used at once; servers and the daemon list when the host is restarted."""
    old = MasterSettings()
    new = MasterSettings(daemon_list=("startd",), backoff_constant=1.0, name="x")
    assert ["daemon_list", "name"] == needs_restart(msgspec.structs.asdict(old), msgspec.structs.asdict(new))


def test_what_needs_a_restart_is_a_setting() -> None:
    """The list cannot name what is none."""
    assert {field.name for field in msgspec.structs.fields(MasterSettings)} >= AT_RESTART


def test_peace_is_for_those_who_have_jobs() -> None:
    """Only a startd waits for jobs; for the others a peaceful end would be one without a deadline."""
    assert ["peaceful", "peaceful", "graceful"] == [
        manner(name, "peaceful") for name in ("startd", "startd.a", "schedd")
    ]
    assert manner("startd", "fast") == "fast"


def test_a_tuning_script_is_an_absolute_path() -> None:
    """Which program runs as root does not depend on where the master was started."""
    with pytest.raises(ValueError, match="absolute path"):
        MasterSettings(linux_kernel_tuning_script=("tune.sh",))


@pytest.mark.parametrize(("daemon", "another"), [("dagman", "dagman#2"), ("schedd.ap1#2", "schedd.ap1#3")])
def test_a_daemon_is_listed_once(daemon: str, another: str) -> None:
    """The sentence says what one writes who wants two processes."""
    with pytest.raises(ValueError, match=f"'{daemon}' is there 2 times; .* '{another}'"):
        MasterSettings(daemon_list=(daemon, "startd", daemon))


@pytest.mark.parametrize(
    ("flock_from", "view_from", "says"),
    [((), ("physics",), "write name@domain"), (("ap@physics",), ("ap@physics",), "is in flock_from too")],
)
def test_who_may_forward_ads(flock_from: tuple[str, ...], view_from: tuple[str, ...], says: str) -> None:
    """A name and a domain; one credential has one of the two rights."""
    with pytest.raises(ValueError, match=says):
        MasterSettings(flock_from=flock_from, view_from=view_from)
    MasterSettings(flock_from=("ap@physics",), view_from=("view@physics",))
