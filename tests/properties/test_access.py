"""
Who may do what, on random lists, rules and files: against plain evaluators, and for what must always hold.
"""

import string
from collections.abc import Sequence
from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from kettle.auth.mapping import map_file, rules_file
from kettle.auth.mapping.access_lists import AccessLists, Entry, glob
from kettle.auth.mapping.findings import Place, refusals
from kettle.auth.mapping.levels import Level, closure
from kettle.auth.mapping.principals import Address, of_claims
from kettle.auth.mapping.rules import PlacedRule, Rule, When

_HERE: Final = Place("here")
_USERS: Final = ("ada@p", "bob@p", "eve@q")
_ENTRIES: Final = ("*", "ada@p", "*@p", "b*@*", "eve@q", "*/10.0.0.1", "ada@p/10.*")
_ADDRESSES: Final = ("10.0.0.1", "10.0.0.2", "1.1.1.1")
_DIRECT: Final = {
    "WRITE": "READ", "ADMINISTRATOR": "WRITE", "DAEMON": "WRITE", "NEGOTIATOR": "READ", "CONFIG": "READ", "OWNER": "READ",
    "ADVERTISE_MASTER": "READ", "ADVERTISE_STARTD": "READ", "ADVERTISE_SCHEDD": "READ",
}  # fmt: skip

lists = st.dictionaries(
    st.sampled_from(list(Level)), st.lists(st.sampled_from(_ENTRIES), max_size=3), max_size=6
)


def made(allow: dict[Level, list[str]], deny: dict[Level, list[str]]) -> AccessLists:
    return AccessLists(
        {key.value: [Entry.read(each, _HERE) for each in entries] for key, entries in allow.items()},
        {key.value: [Entry.read(each, _HERE) for each in entries] for key, entries in deny.items()},
    )


def applies(entry: str, user: str, address: str) -> bool:
    who, slash, where = entry.partition("/")
    host_matches = (
        not slash
        or where == "*"
        or (address.startswith(where[:-1]) if where[-1] == "*" else where == address)
    )
    if "@" not in who:
        return host_matches and who == "*"
    (name, domain), (own, its) = who.split("@"), user.split("@")
    named = name == own or (name[-1] == "*" and own.startswith(name[:-1]))
    return host_matches and named and domain in {"*", its}


def allowed(
    allow: dict[Level, list[str]], deny: dict[Level, list[str]], level: str, user: str, address: str
) -> bool:
    """
    The definition, written down: denied; allowed; or allowed a level of which this one is the next lower.
    """

    def entries(of: dict[Level, list[str]]) -> Sequence[str]:
        if Level(level) in of:
            return of[Level(level)]
        return of.get(Level.DAEMON, []) if level.startswith("ADVERTISE") else []

    own, refused = entries(allow), entries(deny)
    if any(applies(each, user, address) for each in refused):
        return False
    if any(applies(each, user, address) for each in own):
        return True
    return any(
        allowed(allow, deny, above, user, address) for above, below in _DIRECT.items() if below == level
    )


@settings(max_examples=60)
@given(lists, lists)
def test_lists_decide_by_their_definition(
    allow: dict[Level, list[str]], deny: dict[Level, list[str]]
) -> None:
    """Every level of every user from every address is what a plain evaluation gives."""
    ours = made(allow, deny)
    for level in Level:
        for user in _USERS:
            for address in _ADDRESSES:
                expected = allowed(allow, deny, level.value, user, address)
                assert expected == ours.decide(user, level, Address(address)).allowed


@settings(max_examples=60)
@given(lists, lists, st.sampled_from(list(Level)), st.sampled_from(_USERS))
def test_deny_wins_and_what_is_implied_follows(
    allow: dict[Level, list[str]], deny: dict[Level, list[str]], level: Level, user: str
) -> None:
    """
    Nobody has a level on whose deny list he is; without deny lists who has a level has all that it implies.
    """
    here = Address("10.0.0.1")
    shut = made(allow, {**deny, level: [*deny.get(level, []), user]})
    assert not shut.decide(user, level, here).allowed
    free = made(allow, {})
    if free.decide(user, level, here).allowed:
        assert all(free.decide(user, each, here).allowed for each in closure([level]))
    else:
        assert not free.decide(user, level, here).because


@given(st.text("ab*", max_size=8), st.text("ab", max_size=8))
def test_a_glob_is_found_by_trying(pattern: str, text: str) -> None:
    """`*` stands for any text, also for none."""

    def found(pattern: str, text: str) -> bool:
        if not pattern:
            return not text
        if pattern[0] == "*":
            return any(found(pattern[1:], text[at:]) for at in range(len(text) + 1))
        return text[:1] == pattern[0] and found(pattern[1:], text[1:])

    assert found(pattern, text) == glob(pattern, text)


some = st.lists(st.sampled_from(["/a", "/b", "/a/b"]), max_size=2).map(tuple)
whens = st.builds(
    When,
    issuer=st.sampled_from(["", "i", "j"]),
    groups=some,
    scopes=st.lists(st.sampled_from(["openid", "email"]), max_size=2).map(tuple),
    subject=st.sampled_from(["", "s", "/^s.*$/", "/^t$/"]),
)
tokens = st.fixed_dictionaries(
    {
        "iss": st.sampled_from(["i", "j"]),
        "sub": st.sampled_from(["s", "t", "st"]),
        "groups": st.lists(st.sampled_from(["/a", "/b", "/a/b", "/a/bb"]), max_size=3),
        "scope": st.sampled_from(["", "openid", "openid email"]),
    }
)


@settings(max_examples=150)
@given(st.lists(whens, max_size=6), tokens)
def test_the_first_rule_counts_and_a_shadowed_one_never(
    written: list[When], claims: dict[str, object]
) -> None:
    """
    What applies is what a plain comparison says, and a rule that is reported as never counting never counts.
    """
    rules = [PlacedRule(Rule(when=when, owner=f"u{at}"), Place("r", at)) for at, when in enumerate(written)]
    principal = of_claims(claims)

    def plainly(when: When) -> bool:
        subject = str(claims["sub"])
        matches = {"": True, "s": subject == "s", "/^s.*$/": subject[0] == "s", "/^t$/": subject == "t"}[
            when.subject
        ]
        groups, scopes = set(when.groups), set(when.scopes)
        return (
            matches
            and when.issuer in {"", claims["iss"]}
            and (not groups or bool(groups & set(principal.groups)))
            and scopes <= set(str(claims["scope"]).split())
        )

    applying = [at for at, rule in enumerate(rules) if rule.apply(principal) is not None]
    assert applying == [at for at, when in enumerate(written) if plainly(when)]
    never = {at for at, rule in enumerate(rules) if any(before.covers(rule) for before in rules[:at])}
    assert not never & set(applying[:1])


_PIECES: Final = st.sampled_from([
    "SSL ", "SCITOKENS", " ", "\t", "\n", '"', "/", "\\", "\\1", "^", "$", "(", ")", ".*", "[", "]", "i", "#", "@include x", "é", "\x00",
    "(?i)", "|", "*", "{2}", "\r\n", "\x0c", "\ud800",
])  # fmt: skip


@settings(max_examples=200)
@given(st.lists(_PIECES | st.text(string.printable, max_size=5), max_size=30).map("".join))
def test_no_text_breaks_the_reader_of_map_files(text: str) -> None:
    """Each text is a map file or is refused with a line that is there; what is read can be asked."""

    def include(file: str, name: str) -> Sequence[tuple[str, str]]:
        return [(name, "SSL a b")]

    file, findings = map_file.read("map", text, include)
    assert all(1 <= each.place.line <= text.count("\n") + 1 for each in refusals(findings))
    for line in file.lines:
        file.find(line.method, text)
        assert str(line.because(("x", "y")))


trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just("/(/"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "rules",
                    "bans",
                    "accounting_groups",
                    "when",
                    "owner",
                    "groups",
                    "levels",
                    "claims",
                    "until",
                    "x",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@settings(max_examples=100)
@given(st.dictionaries(st.sampled_from(["rules", "bans", "accounting_groups", "x"]), trees, max_size=3))
def test_no_table_breaks_the_reader_of_rules(tables: dict[str, object]) -> None:
    """Whatever TOML says, it is rules or it is refused."""
    found, findings = rules_file.read(tables, lambda keys: Place("rules", len(keys)))
    claims = {"iss": "i", "sub": "s", "claims": tables}
    for rule in found.rules:
        rule.apply(of_claims(claims))
    assert all(str(each) for each in findings)
