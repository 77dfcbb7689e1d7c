"""The names of flocking."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle_wire.flocking import (
    abroad,
    domain_of,
    guest,
    is_claim_of,
    is_guest,
    is_visitor,
    name_there,
    pool_of,
    stranger,
)
from kettle_wire.subjects import ad_key, submitters_key

US = "ap@physics.example"


def test_a_startd_has_the_name_of_its_pool_before_its_own() -> None:
    """One of the own pool has none."""
    assert ("chem/node1", "chem", "node1") == (
        abroad("chem", "node1"),
        pool_of("chem/node1"),
        name_there("chem/node1"),
    )
    assert ("node1", "", "node1") == (abroad("", "node1"), pool_of("node1"), name_there("node1"))
    assert ("chem", "a/b") == (pool_of(abroad("chem", "a/b")), name_there(abroad("chem", "a/b")))


@given(submitter=st.text(min_size=1, max_size=30))
def test_every_submitter_has_a_guest_that_is_in_no_group_there(submitter: str) -> None:
    """A dot before the @ would put it into an accounting group of that pool."""
    name = guest(submitter, US)
    assert is_guest(name, US)
    assert "." not in name.rpartition("@")[0]
    assert not is_guest(name, "ap@other.example")


@pytest.mark.parametrize("name", ["alice", "alice@", "@physics.example", "physics.alice@physics.example", ""])
def test_who_is_no_guest(name: str) -> None:
    """No domain, another one, no name, or a group."""
    assert not is_guest(name, US)


@pytest.mark.parametrize("name", ["ap", "@x", "a b@x", "a@b@c", "ap@x\n", "ap@", "a.b@c"])
def test_what_is_no_name_of_a_visitor(name: str) -> None:
    """It has one @, and nothing that has a meaning elsewhere."""
    assert not is_visitor(name)
    assert is_visitor(US)
    assert "physics.example" == domain_of(US)


def test_claims_begin_with_the_visitors_name() -> None:
    """So that no two pools mean different claims by one id."""
    assert is_claim_of(f"{US}#schedd.ap#1#1", US)
    assert not is_claim_of("schedd.ap#1#1", US)
    assert not is_claim_of(f"{US}x#1", US)


def test_an_ad_of_a_visitor_is_about_its_guests() -> None:
    """Under the visitor's key; an ad of the pool's own schedds may say what it likes."""
    key = submitters_key(US, guest("alice", US))
    assert "" == stranger(key, guest("alice", US), US)
    assert "" == stranger(ad_key("Submitter", "alice@ap"), "alice", "ap")
    assert "names the schedd ap" in stranger(key, guest("alice", US), "ap")
    for name in ("alice", "physics.alice@physics.example", "alice@other"):
        assert f"names the submitter {name}" in stranger(key, name, US)
