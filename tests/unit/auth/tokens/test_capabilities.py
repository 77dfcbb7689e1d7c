"""What scopes allow."""

from typing import Final

import pytest

from kettle.auth.tokens.capabilities import covers, require_level, rights, storage_allows
from kettle.auth.tokens.checking.issuers import Issuer
from kettle.auth.tokens.checking.scopes import check_storage_scopes, is_capability
from kettle.auth.tokens.verified import Profile, TokenError, VerifiedToken

ISSUER = Issuer(url="https://vo.example.org", audiences=("us",))


def token(*scopes: str, profile: Profile = "wlcg") -> VerifiedToken:
    return VerifiedToken(
        issuer=ISSUER.url,
        subject="ada",
        audience=("us",),
        profile=profile,
        scopes=scopes,
        groups=(),
        expires=2,
        issued=1,
        id="",
        claims={},
    )


SCOPES: Final[list[tuple[tuple[str, ...], set[str]]]] = [
    (("condor:/READ",), {"READ"}),
    (("condor:/READ", "condor:/DAEMON"), {"READ", "DAEMON"}),
    (("condor:/READ/more",), set()),
    (("condor:/read",), set()),
    (("condor:READ",), set()),
    (("condor:/",), set()),
    (("condor",), set()),
    (("compute.read",), {"READ"}),
    (("compute.read:/a",), set()),
    (("compute.create", "compute.modify"), set()),
    (("compute.create", "compute.cancel"), set()),
    (("compute.modify", "compute.cancel"), set()),
    (("compute.cancel", "compute.create", "compute.modify"), {"WRITE"}),
    (("compute.cancel", "compute.create", "compute.modify:/a"), set()),
    ((), set()),
]


@pytest.mark.parametrize(("scopes", "levels"), SCOPES)
def test_scopes_give_levels(scopes: tuple[str, ...], levels: set[str]) -> None:
    """
    Each level by its own scope, and WRITE by the three of `compute` together; nothing by a part of a name.
    """
    assert levels == rights(token(*scopes), ISSUER).levels


@pytest.mark.parametrize("profile", ["scitokens", "at+jwt", "plain"])
def test_compute_scopes_mean_something_in_wlcg_tokens_only(profile: Profile) -> None:
    """No other profile says what they mean."""
    assert set() == rights(token("compute.read", profile=profile), ISSUER).levels


def test_what_compute_scopes_cover_is_for_the_site_to_say() -> None:
    """Only the jobs of the subject, unless the site follows the profile."""
    assert "own" == rights(token("compute.read"), ISSUER).covers
    whole = Issuer(url=ISSUER.url, audiences=ISSUER.audiences, compute="vo")
    assert "vo" == rights(token("compute.read"), whole).covers


def test_capabilities_for_others_give_no_right() -> None:
    """
    A token for a storage service is valid and is told that it lacks rights; one without capabilities is asked no such
    thing.
    """
    with pytest.raises(TokenError) as caught:
        require_level(token("storage.read:/"), ISSUER)
    assert caught.value.code == "token.no_rights"
    assert frozenset() == require_level(token("openid"), ISSUER)
    assert {"READ"} == require_level(token("storage.read:/", "compute.read"), ISSUER)


@pytest.mark.parametrize(
    ("scope", "capability"),
    [
        ("storage.read:/", True),
        ("storage.poll:/", True),
        ("compute.create", True),
        ("condor:/READ", True),
        ("read:/data", True),
        ("write:/data", True),
        ("read", False),
        ("openid", False),
        ("compute", False),
        ("storage", False),
        ("wlcg.groups:/cms", False),
    ],
)
def test_capabilities_are_told_from_other_scopes(scope: str, *, capability: bool) -> None:
    """By their family, or by the colon behind a name of SciTokens; asking for groups is no capability."""
    assert capability is is_capability(scope)


@pytest.mark.parametrize(
    ("scope", "operation", "path", "allowed"),
    [
        ("storage.read:/foo/bar", "read", "/foo/bar", True),
        ("storage.read:/foo/bar", "read", "/foo/bar/x", True),
        ("storage.read:/foo/bar", "read", "/foo/bargain", False),
        ("storage.read:/foo/bar", "read", "/foo", False),
        ("storage.read:/foo/", "read", "/foo/x", True),
        ("storage.read:/foo/", "read", "/foo/", True),
        ("storage.read:/foo/", "read", "/foo", False),
        ("storage.read:/", "read", "/anything", True),
        ("storage.read:/foo", "read", "/foo/../bar", False),
        ("storage.read:/foo", "read", "/foo/%2e%2e/bar", False),
        ("storage.read:/foo", "read", "/foo//bar", False),
        ("storage.read:/foo", "read", "foo", False),
        ("storage.read:/foo", "stat", "/foo/x", True),
        ("storage.read:/foo", "stage", "/foo/x", False),
        ("storage.read:/foo", "create", "/foo/x", False),
        ("storage.stage:/foo", "read", "/foo/x", True),
        ("storage.stage:/foo", "stage", "/foo/x", True),
        ("storage.create:/foo", "create", "/foo/x", True),
        ("storage.create:/foo", "modify", "/foo/x", False),
        ("storage.create:/foo", "read", "/foo/x", False),
        ("storage.create:/foo", "stat", "/foo/x", True),
        ("storage.modify:/foo", "create", "/foo/x", True),
        ("storage.modify:/foo", "modify", "/foo/x", True),
        ("storage.modify:/foo", "read", "/foo/x", False),
        ("storage.stat:/foo", "stat", "/foo/x", True),
        ("storage.stat:/foo", "read", "/foo/x", False),
        ("storage.read", "read", "/foo", False),
        ("storage.other:/foo", "stat", "/foo", False),
    ],
)
def test_storage_scopes_are_about_whole_parts_of_paths(
    scope: str, operation: str, path: str, *, allowed: bool
) -> None:
    """Modify includes create, stage includes read, each includes stat, and no path leads out of its scope."""
    assert allowed is storage_allows([scope], operation, path)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "scope",
    [
        "storage.read",
        "storage.read:",
        "storage.read:foo",
        "storage.read:/a/../b",
        "storage.read:/a/./b",
        "storage.read:/..",
        "storage.read:/a//b",
        "storage.read:/a/%2e%2e/b",
        "storage.read:/a%2Fb",
        "storage.read:/a/%252e%252e/b",
    ],
)
def test_a_storage_scope_that_says_two_things_makes_its_token_bad(scope: str) -> None:
    """One without a path, and one whose path leads elsewhere, is refused with the whole token."""
    check_storage_scopes(["openid", "storage.read:/a/b", "storage.read:/", "storage.stage:/a%20b/"])
    with pytest.raises(TokenError) as caught:
        check_storage_scopes(["compute.read", scope])
    assert caught.value.code == "token.scope"


@pytest.mark.parametrize(
    ("held", "asked", "covered"),
    [
        ("condor:/WRITE", "condor:/READ", True),
        ("condor:/READ", "condor:/WRITE", False),
        ("condor:/ADMINISTRATOR", "condor:/WRITE", True),
        ("storage.read:/foo/bar", "storage.read:/foo/bar/x", True),
        ("storage.read:/foo/bar", "storage.read:/foo/bargain", False),
        ("storage.read:/foo/bar", "storage.read:/foo", False),
        ("storage.read:/foo", "storage.read:/foo/../bar", False),
        ("storage.read:/", "storage.read:/anything", True),
        ("storage.modify:/a", "storage.create:/a/b", True),
        ("storage.create:/a", "storage.modify:/a/b", False),
        ("storage.stage:/a", "storage.read:/a", True),
        ("compute.read", "compute.create", False),
        ("compute.read", "compute.read", True),
        ("compute.create", "compute.create", True),
        ("compute.create", "compute.cancel", False),
        ("condor:/WRITE", "condor:/ADMINISTRATOR", False),
        ("storage.read:/a", "storage.read:/a/b", True),
        ("storage.read:/a", "storage.read:/ab", False),
        ("storage.read:/a/b", "storage.read:/a", False),
        ("storage.read:/a", "storage.stage:/a", False),
        ("storage.read:/a", "storage.read:/a/../b", False),
        ("storage.read:/a", "storage.read", False),
        ("storage.read:/a", "read:/a", False),
    ],
)
def test_a_scope_covers_itself_and_less(held: str, asked: str, *, covered: bool) -> None:
    """Levels as they imply each other; paths are compared segment by segment."""
    assert covered == covers(held, asked)
