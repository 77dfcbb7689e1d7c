"""The sessions of browsers: how they begin and end, and where a browser is led."""

import pytest

from kettle_services.gateway.rest.credential import Credential
from kettle_services.gateway.sessions.links import LIFE_S, Links
from kettle_services.gateway.sessions.session_table import Lives, SessionTable
from kettle_services.gateway.sessions.targets import own_target

TOKEN_OF_ADA = Credential(token="t")


def begin(table: SessionTable, person: str = "ada", now: float = 0.0) -> str:
    return table.begin(person, TOKEN_OF_ADA, "token", address="", agent="", now=now)[0]


def test_a_session_ends_by_its_age_and_by_idleness() -> None:
    """Each request puts off the one and not the other."""
    table = SessionTable(Lives(whole=100.0, idle=10.0))
    shown = begin(table)
    for now in range(9, 100, 9):
        assert table.find(shown, float(now)) is not None
    assert table.find(shown, 100.0) is None
    shown = begin(table, now=200.0)
    assert table.find(shown, 210.0) is None
    assert 0 == len(table)


def test_a_session_is_known_by_nothing_that_anybody_sees() -> None:
    """Neither its id nor what a page repeats opens it."""
    table = SessionTable(Lives(whole=100.0, idle=100.0))
    shown, session = table.begin("ada", TOKEN_OF_ADA, "token", address="", agent="", now=0.0)
    for other in (session.id, session.csrf, "", shown[:-1], f"{shown} ", "\udcff"):
        assert table.find(other, 1.0) is None
    assert table.find(shown, 1.0) is session
    assert shown not in repr(session)


def test_of_many_sessions_those_that_are_not_used_end() -> None:
    """One person has only so many, which does not touch those of others."""
    table = SessionTable(Lives(whole=100.0, idle=100.0), most_of_one=2, most=3)
    of_bob = begin(table, "bob")
    first, second = begin(table), begin(table)
    table.find(first, 1.0)
    third = begin(table)
    assert [None, True, True, True] == [
        table.find(each, 2.0) and True for each in (second, first, third, of_bob)
    ]
    begin(table, "cyd")
    assert table.find(first, 3.0) is None
    assert 3 == len(table)


def test_a_link_works_once_within_a_minute() -> None:
    """A second use, a late one and a code that was never made are the same: nothing."""
    links = Links()
    made = links.make("ada", TOKEN_OF_ADA, 0.0)
    assert [None, TOKEN_OF_ADA, None] == [links.redeem(each, 1.0) for each in (made[:-1], made, made)]
    assert links.redeem(links.make("ada", TOKEN_OF_ADA, 0.0), LIFE_S) is None


def test_nobody_ends_the_links_of_others() -> None:
    """Of somebody who makes very many links the oldest ends, and nobody else's."""
    links = Links()
    of_ada = links.make("ada", TOKEN_OF_ADA, 0.0)
    first, *_, last = (links.make("eve", TOKEN_OF_ADA, 0.0) for _ in range(2_000))
    assert [None, TOKEN_OF_ADA, TOKEN_OF_ADA] == [links.redeem(each, 1.0) for each in (first, last, of_ada)]


@pytest.mark.parametrize(
    ("said", "leads"),
    [
        ("/jobs?state=held&page=x", "./jobs?state=held&page=x"),
        ("//evil.example/", "./"),
        ("/\\evil.example", "./"),
        ("https://evil.example/", "./"),
        ("javascript:alert(1)", "./"),
        ("/jobs\r\nSet-Cookie: a=b", "./"),
        ("\t//evil.example", "./"),
        ("", "./"),
        ("/" + "x" * 3000, "./"),
        ("/login?link=x", "./"),
        ("/logout", "./"),
        ("/login/start?issuer=x", "./"),
        ("/%6Cogin?link=x", "./"),
        ("/jobs/..//./login#x", "./"),
        ("/jobs/%2e%2e/login", "./"),
        ("/.\\login", "./"),
        ("/jobs?next=/login", "./jobs?next=/login"),
        ("/logins", "./logins"),
    ],
)
def test_nothing_leads_to_another_site_or_login(said: str, leads: str) -> None:
    """
    Only a path of ours is kept, and it is relative: no server's name can be in it.  None leads to where browsers sign in or out, which
    would seem to be wished for by a page of ours.
    """
    assert leads == own_target(said)
