"""What a job's ad says of its match, in the copy that goes to the machine."""

import pytest

from kettle.jobs.match_references import SCRATCH, unknown
from kettle_services.schedd.domain.jobs.matched_ad import matched, runs_in_place
from kettle_wire.ads.types import Ad, Expr

NOW = 1000.0
SLOT: Ad = {
    "Name": "slot1@host",
    "Cpus": 4,
    "Disk": Expr("TARGET.RequestDisk * 2"),
    "FileSystemDomain": "example.org",
    "JobAccount": "alice",
}
SHARED: Ad = {"ShouldTransferFiles": "IF_NEEDED", "FileSystemDomain": "example.org", "Owner": "alice"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("on $$(Name)", "on slot1@host"),
        ("$$(cpus)$$(Cpus)", "44"),
        ("$$(Disk)", "20"),
        ("$$(Gpus:none)", "none"),
        ("$$(Gpus:)", ""),
        ("$$([TARGET.Cpus * MY.RequestDisk])", "40"),
        ('$$([strcat("a", TARGET.Cpus)])', "a4"),
        ("$$(DOLLARDOLLAR)x", "$$x"),
        ("$(Name) $ $$ $$Name", "$(Name) $ $$ $$Name"),
        (SCRATCH, SCRATCH),
    ],
)
def test_references_become_text(text: str, expected: str) -> None:
    """Of the machine's attributes and of expressions over both ads."""
    ad: Ad = {"RequestDisk": 10, "Arguments": text}
    found = matched(ad, SLOT, NOW)
    assert expected == found["Arguments"]
    assert "" == unknown({"Arguments": found["Arguments"]}) or "$$x" in expected


def test_expressions_may_refer_too() -> None:
    """What is put in is a part of the expression, and the stored ad stays as it is."""
    ad: Ad = {"Rank": Expr("$$(Cpus) + 1"), "MATCH_Name": "$$(Name)"}
    assert {"Rank": Expr("4 + 1"), "MATCH_Name": "$$(Name)"} == matched(ad, SLOT, NOW)
    assert Expr("$$(Cpus) + 1") == ad["Rank"]


@pytest.mark.parametrize("text", ["$$(Gpus)", "$$([TARGET.Gpus])", "$$([1 +])", "$$([error])"])
def test_what_has_no_value_is_named(text: str) -> None:
    """The job is held with it, and does not run with something else."""
    assert text == unknown(matched({"Environment": f"A={SCRATCH} B={text}"}, SLOT, NOW))


def test_a_job_finds_its_files_where_the_file_systems_are_the_same() -> None:
    """With its owner's rights, and only where files need not be moved."""
    assert runs_in_place(SHARED, SLOT, NOW)
    assert "NO" == matched(SHARED, SLOT, NOW)["ShouldTransferFiles"]


@pytest.mark.parametrize(
    ("job", "slot"),
    [
        ({"ShouldTransferFiles": "YES"}, {}),
        ({"FileSystemDomain": "elsewhere"}, {}),
        ({"Owner": "bob"}, {}),
        ({"TransferInput": "a, https://example.org/b"}, {}),
        ({"OutputDestination": "https://example.org/"}, {}),
        ({"ContainerImage": "image.sif"}, {}),
        ({}, {"FileSystemDomain": ""}),
        ({}, {"JobAccount": "slot1"}),
    ],
)
def test_files_are_moved_where_they_have_to_be(job: Ad, slot: Ad) -> None:
    """To another file system, for another account, from or to a URL, into a container."""
    assert not runs_in_place(SHARED | job, SLOT | slot, NOW)


@pytest.mark.parametrize(("owner", "expected"), [("alice", True), ("bob", True), ("root", False)])
def test_the_machine_may_say_the_account_by_the_job(owner: str, *, expected: bool) -> None:
    """A local job of an access point for accounts runs as its owner, but nobody's runs as root."""
    account = Expr('ifThenElse(TARGET.Owner == "root", undefined, TARGET.Owner)')
    assert expected == runs_in_place(SHARED | {"Owner": owner}, SLOT | {"JobAccount": account}, NOW)
