"""How slot types divide a machine."""

import pytest

from kettle_services.startd.domain.slots.layout import LayoutError, SlotType, lay_out
from kettle_services.startd.domain.slots.resources import Resources

TOTAL = Resources(cpus=8, memory=8000, disk=80_000, custom={"GPUs": 3, "Licences": 4})
GPUS = {"GPUs": ("a", "b", "c")}


def test_without_types_one_slot_has_everything() -> None:
    """A partitionable one."""
    (slot,) = lay_out([], TOTAL, GPUS)

    assert (1, True, TOTAL, GPUS) == (slot.number, slot.partitionable, slot.total, slot.devices)


def test_amounts_parts_and_what_is_left() -> None:
    """A number, a percentage, a fraction; "auto" shares the rest, and its odd pieces go to the first."""
    types = [
        SlotType(count=2, cpus=1, memory="12.5%", disk="1/8", resources={"gpus": 1, "Licences": 0}),
        SlotType(partitionable=True),
    ]

    slots = lay_out(types, TOTAL, GPUS)

    small = Resources(1, 1000, 10_000, {"GPUs": 1, "Licences": 0})
    assert [small, small, Resources(6, 6000, 60_000, {"GPUs": 1, "Licences": 4})] == [s.total for s in slots]
    assert [("a",), ("b",), ("c",)] == [slot.devices["GPUs"] for slot in slots]
    assert [(1, 1, False), (2, 1, False), (3, 2, True)] == [
        (s.number, s.type, s.partitionable) for s in slots
    ]


def test_nothing_is_left_over_by_equal_parts() -> None:
    """Eight cores and three devices in five slots."""
    slots = lay_out([SlotType(count=5)], TOTAL, GPUS)

    assert [2, 2, 2, 1, 1] == [slot.total.cpus for slot in slots]
    assert [("a",), ("b",), ("c",), (), ()] == [slot.devices["GPUs"] for slot in slots]


def test_none_of_what_the_machine_does_not_have_can_be_given() -> None:
    """So a layout for machines with GPUs does for one whose driver has failed."""
    types = [
        SlotType(cpus=1, resources={"GPUs": 0}),
        SlotType(cpus=1, resources={"GPUs": "auto", "FPGAs": "0"}),
    ]

    slots = lay_out(types, Resources(cpus=8, memory=8000, disk=80_000), {})

    assert [{}, {}] == [slot.total.custom for slot in slots]


def test_a_machine_whose_disk_is_full_is_divided_all_the_same() -> None:
    """It has to start, to end what runs and say so."""
    slots = lay_out([SlotType(count=2)], Resources(cpus=2, memory=4000, disk=0), {})

    assert [0, 0] == [slot.total.disk for slot in slots]


@pytest.mark.parametrize(
    ("types", "words"),
    [
        ([SlotType(count=9)], "slot type 1 gets no core; the machine has 8 for 9 slots"),
        ([SlotType(count=2, cpus=5)], "ask for 10 of Cpus, but the machine has 8"),
        ([SlotType(memory="75%"), SlotType(memory="50%")], "ask for 10000 of Memory"),
        ([SlotType(resources={"GPUs": 4})], "ask for 4 of GPUs, but the machine has 3"),
        (
            [SlotType(resources={"FPGAs": 1})],
            "wants FPGAs, which this machine does not have; it has GPUs, Licences",
        ),
        ([SlotType(cpus="many")], "cpus of slot type 1: 'many' is none of"),
        ([SlotType(cpus="1/0")], "'1/0' is none of"),
        ([SlotType(cpus=-1)], "-1 is none of"),
        ([SlotType(memory="100%"), SlotType()], "slot type 2 gets no memory"),
        ([SlotType(disk=0), SlotType()], "slot type 1 gets no disk"),
        ([SlotType(count=0)], "no slot type with a count above 0"),
        ([SlotType(count=-1), SlotType()], "slot type 1 has a count of -1"),
    ],
)
def test_what_the_machine_cannot_be_is_refused(types: list[SlotType], words: str) -> None:
    """The sentence says which type asks for what."""
    with pytest.raises(LayoutError) as refused:
        lay_out(types, TOTAL, GPUS)

    assert words in str(refused.value)
