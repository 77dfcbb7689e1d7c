"""Whose jobs alone a machine takes is iam's word, not the machine's."""

import pytest

from kettle.classad import ClassAd, evaluate_attribute
from kettle.matchmaking.machine_owners import MachineOwners
from kettle_wire.ads import Ad, Expr
from kettle_wire.machine_owners import owner_entry

SLOT = "n1=2Eexample.slot1"


def takes(ad: Ad, owner: str) -> bool:
    """Whether a slot's requirements let a job of this owner run."""
    slot, job = ClassAd.from_wire(ad), ClassAd.from_wire({"Owner": owner})
    return evaluate_attribute("Requirements", slot, job) is True


def owners() -> MachineOwners:
    made = MachineOwners()
    made.change("n1=2Eexample", b"ada")
    return made


@pytest.mark.parametrize(
    "said",
    [
        {"Requirements": Expr("START && true"), "Start": True},
        {"requirements": True, "Requirements ": True},
        {"Requirements": Expr("true) || (true")},
        {"REQUIREMENTS": Expr('TARGET.Owner == "bob"'), "kettlemachinerequirements": True},
        {"Requirements": True, "TARGET": "x", "Owner": "bob"},
        {},
    ],
)
def test_no_ad_of_a_machine_lets_others_in(said: Ad) -> None:
    """However it is written."""
    assert not takes(owners().bound(SLOT, said), "bob")


def test_its_owner_has_what_the_machine_allows() -> None:
    """The condition is beside those of the machine, and other machines have none."""
    bound = owners()
    assert takes(bound.bound(SLOT, {"Requirements": Expr("START"), "Start": True}), "ada")
    assert not takes(bound.bound(SLOT, {"Requirements": Expr("START"), "Start": False}), "ada")
    ad: Ad = {"Requirements": True}
    assert ad is bound.bound("n2.slot1", ad)


def test_a_change_is_told_once() -> None:
    """Said twice is said once; a machine that left has no owner."""
    made = MachineOwners()
    assert [True, False, True, False] == [made.change("n1", value) for value in (b"ada", b"ada", None, None)]


def test_a_machine_of_a_group_takes_the_jobs_of_its_members_alone() -> None:
    """
    Schedds say which group a job is in, groups below it included, and who has the name of the group as his own is not in it.
    """
    made = MachineOwners()
    made.change("n1=2Eexample", owner_entry("", "physics"))
    slot = ClassAd.from_wire(made.bound(SLOT, {"Requirements": True}))
    jobs: list[Ad] = [
        {"Owner": "ada", "AcctGroup": "physics"},
        {"Owner": "ada", "AcctGroup": "Physics.higgs"},
        {"Owner": "ada", "AcctGroup": "physicsx"},
        {"Owner": "physics"},
        {"AcctGroup": "biology"},
    ]
    taken = [evaluate_attribute("Requirements", slot, ClassAd.from_wire(job)) is True for job in jobs]
    assert [True, True, False, False, False] == taken
