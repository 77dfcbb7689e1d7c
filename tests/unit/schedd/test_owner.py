"""Whose jobs a submission says that they are."""

from pathlib import Path

import pytest

from kettle.submit import Site, SubmitError, expand, parse
from kettle_services.schedd.domain.submission.validation import Unacceptable, without_owner
from kettle_wire.ads.types import Ad

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


def test_descriptions_for_htcondor_may_have_the_line() -> None:
    """The access point looks at it; others are refused with the line."""
    tolerant = parse(TEXT, source="job.sub", cwd=Path("/"), environ={}, tolerant=True)
    assert "alice" == expand(tolerant, SITE).ad["Owner"]
    with pytest.raises(SubmitError, match="line 2: the attribute Owner is set by the schedd"):
        expand(parse(TEXT, source="job.sub", cwd=Path("/"), environ={}), SITE)
