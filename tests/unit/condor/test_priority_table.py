"""The tables of condor_userprio, with accounting groups."""

from kettle_services.condor.printing.priority_table import ads, rows, table
from kettle_wire.commands.negotiator import GroupStanding, Priorities, Priority

NOW = 1_800_000_000.0
HOUR = 3600.0


def priority(name: str, *, group: str = "", weight: float = 0.0, last: float = NOW) -> Priority:
    return Priority(
        name=name, effective=500.0, priority=0.5, factor=1000.0, slots=weight, weight=weight, last=last,
        accumulated=HOUR, weighted_accumulated=2 * HOUR, group=group,
    )  # fmt: skip


def group(name: str, *, quota: float, standing: Priority | None = None) -> GroupStanding:
    return GroupStanding(
        name=name, config_quota=quota, dynamic=False, quota=quota, subtree_quota=quota, accept_surplus=True,
        autoregroup=False, requested=3.0, allotted=2.0, used=1.0, subtree_used=1.0, sort_key=0.0,
        standing=standing,
    )  # fmt: skip


FOUND = Priorities(
    at=NOW,
    half_life=86400.0,
    submitters=[
        priority("physics.ada", group="physics", weight=2.0),
        priority("ben"),
        priority("old", last=NOW - 48 * HOUR),
    ],
    groups=[
        group("<none>", quota=0.0),
        group("physics", quota=40.0, standing=priority("<physics>", weight=2.0)),
    ],
)


def shown(
    which: str, *, since: float | None = None, flat: bool = False, only_groups: bool = False
) -> list[str]:
    chosen = rows(FOUND, since=since, flat=flat, only_groups=only_groups)
    return [line.rstrip("\n") for line in table(FOUND, chosen, which, since=since)]


def test_users_stand_under_their_groups() -> None:
    """Who is in no group stands under <none>; who has not used the pool of late is left out."""
    lines = shown("most", since=NOW - 24 * HOUR)
    names = [line[:18].rstrip() for line in lines]
    assert ["Group", "  User Name"] == names[1:3]
    assert ["<none>", "  ben", "physics", "  physics.ada"] == names[4:8]
    assert ["500.00", "1000.00", "2", "2.00", "<now>"] == lines[7].split()[1:]
    assert ["Number of users: 2", "2", "4.00", "1+00:00"] == [lines[-1][:18], *lines[-1][18:].split()]


def test_groups_may_be_left_out_or_stand_alone() -> None:
    flat = shown("most", flat=True)
    assert "User Name" == flat[2][:18].rstrip()
    assert ["physics.ada", "ben", "old"] == [line.split()[0] for line in flat[4:7]]
    alone = shown("quotas", only_groups=True)
    assert ["<none>", "physics"] == [line.split()[0] for line in alone[4:6]]
    assert ["500.00", "40.00", "40.00", "yes", "40.00", "3.00"] == alone[5].split()[1:]
    assert alone[-1].startswith("Number of users: 0")


def test_all_columns_have_those_of_quotas_if_there_are_groups() -> None:
    assert "Surplus" in shown("all")[2]
    assert "Surplus" not in shown("all", flat=True)[2]
    for which in ("all", "most", "priority", "quotas", "usage"):
        rule, *others = [line for line in shown(which) if line.startswith("-")]
        assert [rule] == others
        assert all(len(line) <= len(rule) for line in shown(which)), which


def test_of_nobody_there_are_titles() -> None:
    nobody = Priorities(at=NOW, half_life=1.0, submitters=[])
    lines = list(table(nobody, rows(nobody, since=None, flat=False, only_groups=False), "most", since=None))
    assert lines[-1].startswith("Number of users: 0 ")
    assert 6 == len(lines)


def test_each_is_an_ad() -> None:
    """With the names that HTCondor's collector has for them."""
    ada, *_, physics = ads(FOUND)
    assert ("physics.ada", 500.0, 2, "physics", False) == tuple(
        ada[name] for name in ("Name", "Priority", "ResourcesUsed", "AccountingGroup", "IsAccountingGroup")
    )
    assert ("physics", 40.0, True, "byquota") == tuple(
        physics[name] for name in ("Name", "ConfigQuota", "IsAccountingGroup", "SurplusPolicy")
    )
