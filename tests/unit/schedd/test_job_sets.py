"""Which set a submission belongs to."""

import pytest

from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.domain.submission.job_sets import numbered
from kettle_services.schedd.domain.submission.validation import Unacceptable
from kettle_wire.ads import Ad, Expr
from kettle_wire.events import ClusterSubmitted, JobRemoved
from kettle_wire.jobs import JobId


def queue(*submitted: tuple[str, str]) -> Queue:
    """Clusters from 1 on, of these owners and sets."""
    built = Queue("ap")
    for owner, name in submitted:
        submit(built, owner, name)
    return built


def submit(queue: Queue, owner: str, name: str) -> int:
    """As the schedd does it; the JobSetId."""
    number = queue.newest_cluster + 1
    ad = numbered({"JobSetName": name}, [], queue.clusters.values(), owner=owner, number=number)
    event = ClusterSubmitted(cluster=number, owner=owner, ad=ad, columns=[], rows=[[]])
    queue.apply(f"cluster/{number}", event, 1)
    found = queue.ad(JobId(number, 0))["JobSetId"]
    assert isinstance(found, int)
    return found


def test_submissions_of_one_name_are_one_set_of_their_owner() -> None:
    """With the number of its first cluster; names are compared without regard to case, as attributes are."""
    built = queue(("ada", "sweep"), ("bob", "sweep"), ("ada", "other"))
    assert [1, 2, 3, 1] == [
        submit(built, *each)
        for each in (("ada", "SWEEP"), ("bob", "sweep"), ("ada", "other"), ("ada", "sweep"))
    ]


def test_a_name_is_a_new_set_when_the_old_one_has_gone() -> None:
    """So the history can tell them apart."""
    built = queue(("ada", "sweep"), ("ada", "sweep"))
    built.apply("job/1.0", JobRemoved(reason="x", by="ada"), 2)
    assert 1 == submit(built, "ada", "sweep")
    for number in (2, 3):
        built.apply(f"job/{number}.0", JobRemoved(reason="x", by="ada"), 2)
    assert 4 == submit(built, "ada", "sweep")


@pytest.mark.parametrize(
    ("ad", "columns", "says"),
    [
        ({}, ["jobsetname"], "the same for all jobs"),
        ({"JobSetName": ""}, [], "1 to 256 characters"),
        ({"JobSetName": "x" * 257}, [], "1 to 256 characters"),
        ({"JobSetName": 3}, [], "1 to 256 characters"),
        ({"JobSetName": Expr("strcat(Owner)")}, [], "1 to 256 characters"),
        ({"jobsetid": 3}, [], "set by the schedd"),
    ],
)
def test_what_is_no_set_is_refused(ad: Ad, columns: list[str], says: str) -> None:
    """With a sentence."""
    with pytest.raises(Unacceptable, match=says):
        numbered(ad, columns, [], owner="ada", number=1)


def test_who_names_no_set_is_in_none() -> None:
    """The ad stays the same object: nearly all submissions are such."""
    ad: Ad = {"Cmd": "x"}
    assert numbered(ad, [], [], owner="ada", number=1) is ad
