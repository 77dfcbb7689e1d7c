"""Whose jobs a submission says that they are."""

from pathlib import Path

import pytest

from kettle.jobs.submitted_ad import job_ad
from kettle.submit import Site, SubmitError, expand, parse
from kettle_services.schedd.domain.submission.validation import (
    Unacceptable,
    check,
    with_user,
    without_owner,
)
from kettle_wire.ads.types import Ad
from kettle_wire.events import ClusterSubmitted

TEXT = 'executable = /bin/true\n+Owner = "alice"\nqueue\n'
SITE = Site(arch="X86_64", opsys="LINUX", file_system_domain="example.org", check_files=False)


def test_ones_own_name_may_be_said() -> None:
    """It is what the queue says anyway."""
    ad: Ad = {"Cmd": "/bin/true", "owner": "alice"}
    assert {"Cmd": "/bin/true"} == without_owner(ad, "alice")
    assert without_owner({"Cmd": "x"}, "alice") == {"Cmd": "x"}


def test_nobody_submits_as_somebody_else() -> None:
    """The refusal says who one is."""
    with pytest.raises(Unacceptable, match="you are bob: jobs cannot be submitted with Owner = 'alice'"):
        without_owner({"Owner": "alice"}, "bob")


def test_the_user_has_a_domain_and_is_not_chosen() -> None:
    """
    It is the owner at the access point's domain in each job's ad; a submission that names one is refused.
    """
    ad = with_user({"Cmd": "/bin/true"}, "alice", "example.org")
    submitted = ClusterSubmitted(cluster=1, owner="alice", ad=ad, columns=[], rows=[[]])
    made = job_ad(submitted, 0, 0)
    assert ("alice", "alice@example.org") == (made["Owner"], made["User"])
    for name in ("User", "user"):
        with pytest.raises(Unacceptable, match=name):
            check({"Cmd": "/bin/true", name: "alice@elsewhere"}, [], [[]], limit=1)


def test_descriptions_for_htcondor_may_have_the_line() -> None:
    """The access point looks at it; others are refused with the line."""
    tolerant = parse(TEXT, source="job.sub", cwd=Path("/"), environ={}, tolerant=True)
    assert "alice" == expand(tolerant, SITE).ad["Owner"]
    with pytest.raises(SubmitError, match="line 2: the attribute Owner is set by the schedd"):
        expand(parse(TEXT, source="job.sub", cwd=Path("/"), environ={}), SITE)
