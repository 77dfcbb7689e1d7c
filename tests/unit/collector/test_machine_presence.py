import msgspec

from kettle_services.collector.domain.ads import Adverts
from kettle_services.collector.domain.machine_presence import (
    Machines,
    Sighting,
    absence,
    fold,
    row_of,
    sighting_of,
)
from kettle_wire.ads.types import Ad
from kettle_wire.events import MachineJoined, MachineLeft

A = Sighting("a", 4, 1024)
JOINED = MachineJoined(machine="a", cpus=4, memory=1024)


def sighting(key: str, ad: Ad) -> Sighting | None:
    return sighting_of(key, Adverts(lifetime=1.0).put(key, msgspec.msgpack.encode(ad), 0.0))


def test_whose_ad() -> None:
    """
    Startds and slots speak of machines, with the totals of the machine if they have them; others do not.
    """
    assert Sighting("a", 8, 2048) == sighting(
        "StartDaemon.a", {"Name": "a", "TotalCpus": 8, "TotalMemory": 2048}
    )
    slot: Ad = {
        "Name": "slot1_1@a",
        "Machine": "a",
        "Cpus": 1,
        "Memory": 5,
        "DetectedCpus": 8,
        "TotalMemory": 2048,
    }
    assert Sighting("a", 8, 2048) == sighting("Machine.x", slot)
    assert sighting("Machine.x", {"Name": "slot1@a"}) is None
    assert sighting("Absent.x", slot) is None
    assert sighting("Offline.x", slot) is None
    assert sighting("Scheduler.a", {"Name": "a", "Machine": "a"}) is None


def test_a_machine_joins_once() -> None:
    """The first of a machine's ads is its joining; it leaves with the last one."""
    machines = Machines((), deadline=0)
    assert [JOINED] == machines.seen("s1", A)
    assert [] == machines.seen("s1", A)
    assert [] == machines.seen("s2", A)
    assert [] == machines.ended("s1", age=1, lifetime=900)
    assert [MachineLeft(machine="a", reason="drained")] == machines.ended("s2", age=1, lifetime=900)
    assert [] == machines.ended("s2", age=1, lifetime=900)
    assert [JOINED] == machines.seen("s1", A)


def test_expired() -> None:
    """An ad that ended at the end of its lifetime was not withdrawn."""
    machines = Machines((), deadline=0)
    machines.seen("s1", A)
    assert [MachineLeft(machine="a", reason="expired")] == machines.ended("s1", age=900.5, lifetime=900)


def test_a_restart_makes_nobody_leave() -> None:
    """
    Machines of the record that are still there neither join again nor leave; the others do when their time is up.
    """
    machines = Machines({"a", "b"}, deadline=100)
    assert [] == machines.seen("s1", A)
    machines.listed(["s1"], deadline=900)
    assert [] == machines.overdue(99)
    assert [MachineLeft(machine="b", reason="expired")] == machines.overdue(100)
    assert [] == machines.overdue(1000)
    assert {"a"} == machines.joined


def test_a_lost_bus_makes_nobody_leave() -> None:
    """After the bus lost all ads, machines have time to send theirs again."""
    machines = Machines((), deadline=0)
    machines.seen("s1", A)
    machines.listed([], deadline=50)
    assert [] == machines.overdue(49)
    assert [] == machines.seen("s1", A)
    assert [] == machines.overdue(51)


def test_a_slot_that_moved() -> None:
    """A key that now names another machine does not keep the first one there permanently."""
    machines = Machines((), deadline=0)
    machines.seen("s1", A)
    machines.seen("s1", Sighting("b", 1, 1))
    machines.listed(["s1"], deadline=10)
    assert [MachineLeft(machine="a", reason="expired")] == machines.overdue(10)


def test_an_absent_machine() -> None:
    """
    The slots that are expected back are in the event, and in the row; of a machine that left by itself none is.
    """
    machines = Machines((), deadline=0)
    slot: Ad = {"Name": "slot1@a"}
    for age, left in (
        (900.5, MachineLeft(machine="a", reason="expired", slots=[slot])),
        (1, MachineLeft(machine="a", reason="drained")),
    ):
        assert [JOINED] == machines.seen("startd", A)
        machines.seen("slot", A)
        assert [] == machines.ended("slot", age=900.5, lifetime=900, expected=slot)
        assert [left] == machines.ended("startd", age=age, lifetime=900)
        assert left.slots == absence(row_of(left))
    assert [] == absence(row_of(JOINED))


def test_a_slot_that_ran_out_is_not_absent_while_its_machine_is_heard() -> None:
    """Only what was silent together with its machine is."""
    machines = Machines((), deadline=0)
    machines.seen("startd", A)
    machines.seen("slot", A)
    machines.ended("slot", age=900.5, lifetime=900, expected={"Name": "slot1@a"})
    machines.seen("startd", A)
    assert [MachineLeft(machine="a", reason="expired")] == machines.ended("startd", age=900.5, lifetime=900)


def test_fold() -> None:
    """The record alone tells which machines are there."""
    joined: set[str] = set()
    for event in (
        JOINED,
        MachineJoined(machine="b", cpus=1, memory=1),
        MachineLeft(machine="a", reason="drained"),
    ):
        fold(joined, event)
    assert {"b"} == joined
