"""
Tokens of the matrix as libSciTokens and the package `scitokens` judge them; each difference has a reason.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from tests.conformance.test_token_matrix import LEVELS, WLCG_LEVELS, Verdict, expected
from tests.conformance.token_cells import CONDITIONS, HERE, Cell, cells, ec_key, public, rsa_key, token
from tests.conformance.token_reference import library

from kettle.auth.tokens.issuing.derived import Grant, issue
from kettle.auth.tokens.issuing.key_store import new_key
from kettle.auth.tokens.issuing.signing_keys import KeyRing
from kettle.auth.tokens.verified import Profile

TOP: Final = Path(__file__).parents[2]
FEW: Final = {"absent", "read and write", "storage without path"}
"""The scopes that are tried in conditions in which scopes make no difference to anybody."""
KNOWN: Final = {
    level for levels in (*LEVELS.values(), *WLCG_LEVELS.values()) for level in levels
}  # of the others both say nothing
REFUSED: Final = "refused"


class Difference(NamedTuple):
    """Cells in which another implementation judges otherwise, on purpose; an empty set stands for all."""

    implementations: frozenset[str]
    ours: str
    """The beginning of our verdict: a code, or `good`."""
    why: str
    conditions: frozenset[str] = frozenset()
    profiles: frozenset[str] = frozenset()
    scopes: frozenset[str] = frozenset()

    def covers(self, implementation: str, cell: Cell, ours: Verdict) -> bool:
        """Whether it is about this cell."""
        return (
            implementation in self.implementations
            and (ours.code or "good") == self.ours
            and (not self.conditions or cell.condition in self.conditions)
            and (not self.profiles or cell.profile in self.profiles)
            and (not self.scopes or cell.scopes in self.scopes)
        )


BOTH: Final = frozenset({"libSciTokens", "scitokens"})
LIBRARY: Final = frozenset({"libSciTokens"})

DIFFERENCES: Final = (
    Difference(
        BOTH,
        "token.size",
        "they read tokens of any size; nobody's header would carry one",
        frozenset({"20 kB"}),
    ),
    Difference(
        BOTH,
        "token.malformed",
        "they take the last of two claims of one name, and another reader may take the first",
        frozenset({"a key twice"}),
    ),
    Difference(
        LIBRARY,
        "token.critical",
        "the library ignores what RFC 7515 says must not be ignored",
        frozenset({"crit"}),
    ),
    Difference(
        BOTH,
        "good",
        "they have no tolerance, so a clock that is half a minute off refuses everybody",
        frozenset({"expired within skew", "not before within skew"}),
    ),
    Difference(
        BOTH,
        "token.malformed",
        "the profile wants ASCII: names that look alike must not be two people",
        frozenset({"subject not ASCII"}),
    ),
    Difference(
        BOTH,
        "good",
        "they try the first of two keys of one name; an issuer that made this mistake still signed the token",
        frozenset({"two keys of one name, second"}),
    ),
    Difference(
        LIBRARY,
        "good",
        "it refuses what it has no scopes for; here the token says who somebody is, and rules say what he may",
        scopes=frozenset({"absent"}),
    ),
    Difference(
        LIBRARY,
        "token.scope",
        "it takes a storage scope without a path for one of everything; the WLCG profile refuses the token",
        scopes=frozenset({"storage without path"}),
    ),
    Difference(
        LIBRARY,
        "good",
        "it knows version 1.0 only, and the WLCG profile asks to accept 1.1",
        profiles=frozenset({"wlcg-1.1"}),
    ),
)


class Judged(NamedTuple):
    """One cell and what an implementation makes of it."""

    implementation: str
    cell: Cell
    ours: Verdict
    theirs: str

    def agree(self) -> bool:
        """Whether both allow the same; the package does not tell a refusal from a token without rights."""
        ours = REFUSED if self.ours.code else shown(self.ours.levels)
        if self.implementation == "scitokens":
            return ours.replace(REFUSED, "") == self.theirs.replace(REFUSED, "")
        return ours == self.theirs


def shown(levels: frozenset[str] | set[str]) -> str:
    return " ".join(sorted(levels & KNOWN))


def compared_cells() -> Iterator[Cell]:
    for name, condition in CONDITIONS.items():
        if condition.has_reference:
            yield from (cell for cell in cells(name) if name.startswith("good") or cell.scopes in FEW)


def question(asked: Sequence[Cell], now: int) -> dict[str, object]:
    return {
        "issuers": {
            CONDITIONS["good, ES256"].issuer: {
                "keys": [public(ec_key("e1"), alg="ES256"), public(rsa_key("r1"), alg="RS256")]
            },
            CONDITIONS["two keys of one name, first"].issuer: {
                "keys": [public(ec_key("first"), kid="same"), public(ec_key("second"), kid="same")]
            },
        },
        "audience": HERE,
        "tokens": [(CONDITIONS[cell.condition].issuer, token(cell, now, groups=False)) for cell in asked],
    }


def levels(answer: list[str] | str) -> str:
    if isinstance(answer, str):
        return REFUSED
    return shown({right.removeprefix("condor:/") for right in answer if right.startswith("condor:/")})


def answers(asked: Mapping[str, object]) -> dict[str, list[list[str] | str]]:
    """What each implementation says to a question."""
    if library() is None:
        pytest.skip("package htcondor, the reference, exists for Linux on x86-64 only")
    done = subprocess.run(
        [sys.executable, "-m", "tests.conformance.token_reference"],
        input=json.dumps(asked),
        cwd=TOP,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, list[list[str] | str]] = json.loads(done.stdout)
    assert BOTH == set(found)
    return found


@pytest.fixture(scope="module")
def judged() -> list[Judged]:
    """
    Every cell that can be asked without a network, by every implementation that says something about it.
    """
    asked = list(compared_cells())
    return [
        Judged(implementation, cell, expected(cell), levels(answer))
        for implementation, given in answers(question(asked, int(time.time()))).items()
        for cell, answer in zip(asked, given, strict=True)
        if implementation == "libSciTokens" or cell.profile == "scitokens"
    ]


def test_others_judge_as_we_do_but_for_what_is_told(judged: list[Judged]) -> None:
    """Each cell in which they differ is one of a difference that has a reason."""
    unexplained = [
        each
        for each in judged
        if not each.agree()
        and not any(it.covers(each.implementation, each.cell, each.ours) for it in DIFFERENCES)
    ]
    assert [] == unexplained


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda difference: difference.why[:40])
def test_each_difference_is_still_one(judged: list[Judged], difference: Difference) -> None:
    """A difference that another implementation has given up is taken from the table."""
    for implementation in difference.implementations:
        assert any(
            not each.agree() and difference.covers(implementation, each.cell, each.ours)
            for each in judged
            if each.implementation == implementation
        )


def test_what_we_sign_others_accept() -> None:
    """
    Tokens that are derived here, of the profiles of storage services, with the keys that are published here.
    """
    now = int(time.time())
    ring = KeyRing((new_key(now),))
    issuer = "https://pool.example.invalid"

    def signed(profile: Profile, *scopes: str) -> tuple[str, str]:
        grant = Grant(issuer=issuer, subject="ada", audience=(HERE,), scopes=scopes, profile=profile)
        return issuer, issue(grant, ring.keys[0], now, "1")

    found = answers(
        {
            "issuers": {issuer: json.loads(ring.jwks())},
            "audience": HERE,
            "tokens": [
                signed("wlcg", "storage.read:/data", "compute.read"),
                signed("scitokens", "read:/data", "condor:/READ"),
            ],
        }
    )
    assert [["read:/data", "condor:/READ"], ["read:/data", "condor:/READ"]] == found["libSciTokens"]
    assert ["condor:/READ"] == found["scitokens"][1]
