"""Tokens that a description asks for, and how the job reads it from its ad."""

from pathlib import Path

import pytest

from kettle.jobs.needed_tokens import bearer, needed_tokens
from kettle.submit import SubmitError, expand, parse
from kettle_wire.ads import Ad

from .test_refusals import HEAD, SITE


def submitted(lines: str) -> Ad:
    return expand(parse(f"{HEAD}{lines}\nqueue\n", source="job.sub", cwd=Path("/"), environ={}), SITE).job(0)


def test_services_handles_scopes_and_audiences() -> None:
    """One token of a service, or one for each handle; what is said of another service is of no token."""
    ad = submitted(
        "use_oauth_services = box, kettle\nbox_oauth_permissions_Mine = read, write\nbox_oauth_resource_other = https://b\n"
        "kettle_oauth_permissions = storage.read:/a storage.create:/b\n"
    )
    assert "box*Mine,box*other,kettle" == ad["OAuthServicesNeeded"]
    needed = needed_tokens(ad)
    assert [
        ("box_Mine", ["read", "write"], []),
        ("box_other", [], ["https://b"]),
        ("kettle", ["storage.read:/a", "storage.create:/b"], []),
    ] == [(each.name, each.scopes, each.audiences) for each in needed]
    assert ("kettle", "box_Mine", "") == (bearer(needed), bearer(needed[:2]), bearer([]))


def test_a_name_becomes_that_of_a_file_so_it_has_no_path() -> None:
    """In the description it is refused; in an ad from elsewhere it is no service."""
    with pytest.raises(SubmitError, match=r"'\.\./x' is no name of a service"):
        submitted("use_oauth_services = ../x")
    with pytest.raises(SubmitError, match=r"'a\.b' is no name of a handle"):
        submitted("use_oauth_services = box\nbox_oauth_permissions_a.b = read")
    with pytest.raises(SubmitError, match="at most 32 tokens, not 33"):
        submitted(f"use_oauth_services = {' '.join(f's{number}' for number in range(33))}")
    assert ["ok"] == [each.name for each in needed_tokens({"OAuthServicesNeeded": "../x,ok,a*../b,.a,b*"})][
        :1
    ]
