"""Who is charged for a job."""

import pytest

from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.domain.submission.accounting_group import charged, completed
from kettle_services.schedd.domain.submission.validation import Unacceptable
from kettle_wire.ads import Ad, Expr, Scalar
from kettle_wire.events import ClusterSubmitted
from kettle_wire.jobs import JobId

MEMBERS = {"physics": ("ada", "bob"), "physics.higgs": ("ada",), "chem": ("*",)}


def filled(ad: Ad, owner: str = "ada") -> Ad:
    return completed(ad, [], [[]], owner=owner, members=MEMBERS)[0]


@pytest.mark.parametrize(
    ("said", "whole", "group"),
    [
        ({"AcctGroup": "physics"}, "physics.ada", "physics"),
        ({"acctgroup": "physics.higgs", "AcctGroupUser": "ada"}, "physics.higgs.ada", "physics.higgs"),
        ({"AccountingGroup": "chem.ada"}, "chem.ada", "chem"),
        ({"AcctGroup": "nice-user"}, "nice-user.ada", "nice-user"),
        ({"AcctGroupUser": "ada"}, "ada", ""),
        ({"AccountingGroup": "ada"}, "ada", ""),
    ],
)
def test_a_group_is_completed_with_who_submits(said: Ad, whole: str, group: str) -> None:
    """The name at the end is that of who proved to be it, whichever attribute a job gives."""
    of: Ad = {"AcctGroup": group} if group else {}
    assert {"AccountingGroup": whole, **of, "AcctGroupUser": "ada", "Cmd": "x"} == filled(
        {**said, "Cmd": "x"}
    )


def test_a_credential_gives_the_group_of_jobs_that_name_none() -> None:
    """Who names another is in that one; whose name has a dot is charged alone, and not kept out."""

    def usually(ad: Ad, owner: str = "ada") -> Ad:
        return completed(ad, [], [[]], owner=owner, members=MEMBERS, usual="vo.astro")[0]

    assert "vo.astro.ada" == usually({"Cmd": "x"})["AccountingGroup"]
    assert "physics.ada" == usually({"AcctGroup": "physics"})["AccountingGroup"]
    assert {"Cmd": "x"} == usually({"Cmd": "x"}, "j.smith")
    with pytest.raises(Unacceptable):
        completed({"AcctGroup": "vo.astro"}, [], [[]], owner="bob", members=MEMBERS)


def test_each_spelling_of_a_group_is_the_same_claimant() -> None:
    """
    Upper and lower case give nobody a second share: a submission is recorded with the name that was configured, and
    whatever spelling was recorded before is charged as one.
    """
    members = {"Physics": ("ada",)}
    said: list[Ad] = [{"AcctGroup": "PHYSICS"}, {"AccountingGroup": "pHysics.ada"}, {"AcctGroup": "physics"}]
    ads = [completed(ad, [], [[]], owner="ada", members=members)[0] for ad in said]
    assert ["Physics.ada"] * 3 == [ad["AccountingGroup"] for ad in ads]
    assert ["Physics"] * 3 == [ad["AcctGroup"] for ad in ads]
    assert "nice-user.ada" == filled({"AcctGroup": "NICE-User"})["AccountingGroup"]
    spellings: tuple[Scalar, ...] = ("Physics.Ada", "PHYSICS.Ada", "physics.Ada")
    assert {"physics.Ada"} == {charged({"AccountingGroup": name}, [], "Ada") for name in spellings}


def test_a_dot_in_an_owners_name_makes_nobody_somebody_else() -> None:
    """j.smith in chem would be smith in chem.j: who has a dot in its name may only be nice."""
    with pytest.raises(Unacceptable, match=r"j\.smith has a dot in its name.*submit without one"):
        filled({"AcctGroup": "chem"}, "j.smith")
    assert "nice-user.j.smith" == filled({"AcctGroup": "nice-user"}, "j.smith")["AccountingGroup"]


@pytest.mark.parametrize(
    ("said", "owner", "says"),
    [
        ({"AcctGroup": "maths"}, "ada", "no accounting group maths; there are: chem, physics, physics.higgs"),
        ({"AcctGroup": "physics.higgs"}, "bob", "not for bob"),
        ({"AcctGroup": "physics", "AcctGroupUser": "bob"}, "ada", "cannot be charged to bob"),
        ({"AccountingGroup": "physics.bob"}, "ada", "does not end with .ada"),
        ({"AccountingGroup": "bob"}, "ada", "does not end with .ada"),
        ({"AccountingGroup": "chem.ada", "AcctGroup": "physics"}, "ada", "AcctGroup says physics"),
        ({"AccountingGroup": Expr("Owner")}, "ada", "not an expression"),
        ({"AcctGroup": "<physics>"}, "ada", "no name of an accounting group"),
        ({"AcctGroup": "physics."}, "ada", "no name of an accounting group"),
    ],
)
def test_nobody_is_charged_for_anothers_jobs(said: Ad, owner: str, says: str) -> None:
    """
    Somebody else's name, a group that there is not or that is not for the owner, and what is no name are refused.
    """
    with pytest.raises(Unacceptable, match=says):
        filled(said, owner)


def test_jobs_of_one_submission_may_differ() -> None:
    """Where the group stands in a column each job has its own; all rows are checked."""
    rows: list[list[Scalar]] = [["physics", 1], ["chem", 2]]
    ad, columns, made = completed({"Cmd": "x"}, ["AcctGroup", "N"], rows, owner="ada", members=MEMBERS)
    event = ClusterSubmitted(cluster=1, owner="ada", ad=ad, columns=columns, rows=made)
    queue = Queue("ap")
    queue.apply("cluster/1", event, 0)
    assert ["physics.ada", "chem.ada"] == [queue.submitter(JobId(1, proc)) for proc in (0, 1)]
    assert {"physics.ada", "chem.ada"} == set(queue.demand.on_machines)
    assert (2, 0) == (queue.tally.of_owner("ada").total(), queue.tally.of_owner("physics.ada").total())
    with pytest.raises(Unacceptable, match="no accounting group"):
        completed({}, ["AcctGroup"], [["physics"], ["maths"]], owner="ada", members=MEMBERS)


def test_what_was_recorded_before_anybody_looked_charges_its_owner() -> None:
    """An AccountingGroup that does not end with the owner, or is none, charges the owner."""
    for said in ("bob", "physics.bob", "<x>.ada", Expr('"x.ada"'), 5, ".ada"):
        assert "ada" == charged({"AccountingGroup": said}, [], "ada")
    assert "physics.ada" == charged({"accountinggroup": "physics.ada"}, [], "ada")
