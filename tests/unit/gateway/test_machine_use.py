"""What machines are used for, from the ads of their slots."""

from datetime import UTC, datetime

import pytest

from kettle_services.gateway.rest.use_of_slots import chosen, machine_map, machine_uses
from kettle_wire.ads.types import Ad, Scalar
from kettle_wire.rest.machine_use import AboutMachines

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def slot(name: str, **more: Scalar) -> Ad:
    """One of a machine with eight cores."""
    _, _, machine = name.rpartition("@")
    ad: Ad = {
        "Name": name,
        "Machine": machine,
        "State": "Unclaimed",
        "Draining": False,
        "SlotType": "Partitionable",
        "Cpus": 8,
        "TotalCpus": 8,
        "EnteredCurrentState": 1000,
        "Arch": "X86_64",
        "OpSys": "LINUX",
    }
    return ad | more


def claimed(name: str, owner: str, cpus: int, entered: int = 2000) -> Ad:
    return slot(
        name,
        State="Claimed",
        SlotType="Dynamic",
        Cpus=cpus,
        RemoteOwner=owner,
        EnteredCurrentState=entered,
    )


def test_claims_of_a_machine_are_added_up() -> None:
    """A machine is what its slots are together: cores in use, by whom, and since when that is so."""
    ads = [
        slot("slot1@one", Cpus=2),
        claimed("slot1_1@one", "ada", 1),
        claimed("slot1_2@one", "bob", 4, entered=3000),
        claimed("slot1_3@one", "ada", 1),
        slot("local@one", State="Claimed", SlotType="Local", RemoteOwner="cyd", EnteredCurrentState=9000),
    ]
    (one,) = machine_uses(ads)
    assert ("one", "partly", 6.0, 8, 3) == (one.name, one.state, one.used, one.cores, one.claims)
    assert [("bob", 4.0), ("ada", 2.0)] == [(each.owner, each.cores) for each in one.owners]
    assert 3000 == one.since.timestamp()


@pytest.mark.parametrize(
    ("ads", "state"),
    [
        ([slot("slot1@m")], "free"),
        ([slot("slot1@m", Cpus=0), claimed("slot1_1@m", "ada", 8)], "busy"),
        ([slot("slot1@m", Cpus=7), claimed("slot1_1@m", "ada", 1)], "partly"),
        ([slot("slot1@m", Draining=True), claimed("slot1_1@m", "ada", 8)], "drained"),
        ([slot("slot1@m", State="Drained")], "drained"),
        ([slot("slot1@m", State="Owner")], "owner"),
        ([slot("slot1@m", State="Backfill")], "backfill"),
    ],
)
def test_a_machine_has_one_state(ads: list[Ad], state: str) -> None:
    """That it is being emptied counts most, then what is claimed, then what it does for itself."""
    assert [state] == [use.state for use in machine_uses(ads)]


def test_questions_narrow_by_state_owner_and_architecture() -> None:
    """What is asked for together has to be true together; a user of few cores counts too."""
    uses = machine_uses(
        [
            claimed("slot1@a", "ada", 8),
            claimed("slot1@b", "bob", 5),
            claimed("slot2@b", "ada", 3),
            slot("slot1@c", Arch="aarch64"),
        ]
    )
    names = {
        "abc": AboutMachines(),
        "ab": AboutMachines(owner=["ada"]),
        "b": AboutMachines(owner=["bob"], state=["busy"]),
        "c": AboutMachines(arch=["aarch64"]),
        "": AboutMachines(arch=["aarch64"], state=["busy"]),
    }
    assert list(names) == ["".join(use.name for use in chosen(uses, asked)) for asked in names.values()]


def test_a_map_says_the_same_as_columns() -> None:
    """Each column has an entry for each machine, and names that repeat are there once."""
    found = machine_map(
        machine_uses(
            [claimed("slot1@a", "ada", 8), claimed("slot1@b", "ada", 1), slot("slot1@c", Arch="aarch64")]
        ),
        NOON,
    )
    assert ["a", "b", "c"] == found.names
    assert ["busy", "partly", "free"] == [found.states[at] for at in found.state]
    assert ["ada", "ada", ""] == [found.owners[at] for at in found.owner]
    assert (["ada", ""], ["X86_64", "aarch64"]) == (found.owners, found.arches)
    assert [[8.0, 1.0, 0.0], [2000, 2000, 1000]] == [found.used, found.since]


def test_a_machine_that_sleeps_is_not_free() -> None:
    """Its last ads are there to be seen, and nothing of it can be used."""
    assert ["a"] == [
        use.name
        for use in machine_uses([slot("slot1@b", Offline=True, Machine="b"), slot("slot1@a", Machine="a")])
    ]
