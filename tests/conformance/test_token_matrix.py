"""Every cell of the matrix of tokens against our verifier, with its verdict and its code."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import pytest
from tests.conformance.token_cells import (
    AUDIENCES,
    CONDITIONS,
    HERE,
    PROFILES,
    SCOPES,
    Cell,
    cells,
    ec_key,
    public,
    rsa_key,
    token,
)

from kettle.auth.tokens.capabilities import rights
from kettle.auth.tokens.checking.issuers import Issuer, Issuers
from kettle.auth.tokens.keys.discovery import FetchError, metadata_urls
from kettle.auth.tokens.keys.key_cache import KeyCache
from kettle.auth.tokens.verified import TokenError
from kettle.auth.tokens.verifier import Verifier

NOW: Final = 1_800_000_000
HOUR: Final = 3600.0

PROFILE_NAMES: Final = {name: "wlcg" if name.startswith("wlcg") else name for name in PROFILES}

FOR_US: Final = {
    ("scitokens", "ANY"),
    ("scitokens", "list with ANY"),
    ("wlcg", "WLCG any"),
    *((profile, audience) for profile in PROFILE_NAMES.values() for audience in ("exact", "list")),
}
"""The audiences that are accepted, by profile."""

LEVELS: Final[Mapping[str, set[str]]] = {
    "read": {"READ"},
    "read and write": {"READ", "WRITE"},
    "advertise": {"ADVERTISE_STARTD"},
}
"""What scopes give in every profile."""

WLCG_LEVELS: Final[Mapping[str, set[str]]] = {
    "compute.read": {"READ"},
    "three": {"WRITE"},
    "all compute": {"READ", "WRITE"},
}
"""What else they give in the WLCG profile."""

NO_CAPABILITY: Final = {"absent", "openid"}


class Fault(NamedTuple):
    """
    The code of something that is wrong, and how early it is seen: of several faults the earliest is told.
    """

    step: int
    code: str


FAULTS: Final[Mapping[str, Fault]] = {
    "20 kB": Fault(1, "token.size"),
    "a key twice": Fault(2, "token.malformed"),
    "crit": Fault(3, "token.critical"),
    "alg none": Fault(3, "token.alg"),
    "HS256 with the public key": Fault(3, "token.alg"),
    "issuer not trusted": Fault(4, "token.issuer_unknown"),
    "issuer down, nothing known": Fault(5, "token.keys_unavailable"),
    "issuer down for two days": Fault(5, "token.keys_unavailable"),
    "issuer down, unknown key": Fault(5, "token.keys_unavailable"),
    "issuer redirects to another host": Fault(5, "token.keys_unavailable"),
    "unknown key": Fault(5, "token.key_unknown"),
    "old key, rotated an hour ago": Fault(5, "token.key_unknown"),
    "bad signature": Fault(6, "token.signature"),
    "signed by another": Fault(6, "token.signature"),
    # 7: a claim that the profile demands is missing
    "expired": Fault(8, "token.expired"),
    "not before in the future": Fault(8, "token.not_yet_valid"),
    "issued in the future": Fault(8, "token.not_yet_valid"),
    # 9: the audience
    "subject not ASCII": Fault(10, "token.malformed"),
    # 11: scopes
}
"""Of conditions; all others are good."""


class Verdict(NamedTuple):
    """The code of a refusal, or what the token is and gives."""

    code: str
    levels: frozenset[str] = frozenset()
    groups: tuple[str, ...] = ()
    profile: str = ""


def expected(cell: Cell) -> Verdict:
    """What the tables above say of a cell."""
    profile = PROFILE_NAMES[cell.profile]
    faults = [FAULTS[cell.condition]] if cell.condition in FAULTS else []
    if cell.audience == "absent":
        faults.append(Fault(7, "token.malformed"))
    elif (profile, cell.audience) not in FOR_US:
        faults.append(Fault(9, "token.audience"))
    if cell.scopes == "storage without path":
        faults.append(Fault(11, "token.scope"))
    if faults:
        return Verdict(min(faults).code)
    none: set[str] = set()
    levels = LEVELS.get(cell.scopes, none) | (
        WLCG_LEVELS.get(cell.scopes, none) if profile == "wlcg" else none
    )
    groups = ("/vo", "/vo/production") if profile == "wlcg" else ("physics",)
    return Verdict("", frozenset(levels), groups if cell.scopes in NO_CAPABILITY else (), profile)


class Network:
    """The documents of issuers, as a network would give them."""

    def __init__(self) -> None:
        self.documents: dict[str, bytes] = {}
        self.redirecting: set[str] = set()

    def publish(self, issuer: str, *keys: dict[str, object]) -> None:
        jwks = f"{issuer.rstrip('/')}/jwks"
        about = {"issuer": issuer, "jwks_uri": jwks}
        self.documents[metadata_urls(issuer)[0]] = json.dumps(about).encode()
        self.documents[jwks] = json.dumps({"keys": keys}).encode()

    def take_down(self, issuer: str) -> None:
        self.documents = {url: data for url, data in self.documents.items() if not url.startswith(issuer)}

    async def document(self, url: str) -> bytes:
        if url not in self.documents:
            raise FetchError(f"{url} does not answer")
        return self.documents[url]


def issuers() -> Issuers:
    urls = {condition.issuer for condition in CONDITIONS.values()} - {"https://stranger.example.invalid"}
    return Issuers(Issuer(url=url, audiences=(HERE,), compute="vo") for url in sorted(urls))


async def verifier() -> Verifier:
    """One to which all that the conditions say of issuers has happened."""
    network = Network()
    usual = public(ec_key("e1"), alg="ES256"), public(rsa_key("r1"), alg="RS256")
    down = {
        "https://down.example.invalid": HOUR,
        "https://long-down.example.invalid": 7 * HOUR,
        "https://gone.example.invalid": 48 * HOUR,
    }
    for issuer in ("https://vo.example.invalid/", *down):
        network.publish(issuer, *usual)
    network.publish(
        "https://twice.example.invalid",
        public(ec_key("first"), kid="same"),
        public(ec_key("second"), kid="same"),
    )
    network.publish("https://rotated.example.invalid", public(ec_key("old")))
    cache = KeyCache(network)
    for issuer, age in down.items():
        await cache.keys(issuer, "e1", NOW - age)
        network.take_down(issuer)
    await cache.keys("https://rotated.example.invalid", "old", NOW - 2 * HOUR)
    network.publish("https://rotated.example.invalid", public(ec_key("new")))
    await cache.keys("https://rotated.example.invalid", "new", NOW - HOUR)
    return Verifier(issuers(), cache)


async def verdict(of: Verifier, text: str) -> Verdict:
    try:
        found = await of.verify(text, NOW)
    except TokenError as error:
        shown = str(error)
        assert not any(part[:20] in shown for part in text.split(".") if part), shown
        assert "\n" not in shown
        return Verdict(error.code)
    return Verdict(
        "", frozenset(rights(found, of.issuers.of(found.issuer)).levels), found.groups, found.profile
    )


@pytest.mark.parametrize("condition", CONDITIONS)
def test_each_cell_has_its_verdict_and_its_code(condition: str) -> None:
    """In every profile, for every audience and every set of scopes."""

    async def differing() -> list[tuple[Cell, Verdict, Verdict]]:
        of = await verifier()
        verdicts = [(cell, expected(cell), await verdict(of, token(cell, NOW))) for cell in cells(condition)]
        return [each for each in verdicts if each[1] != each[2]]

    assert [] == asyncio.run(differing())


def every_cell() -> Iterator[Cell]:
    for condition in CONDITIONS:
        yield from cells(condition)


def test_the_matrix_has_every_code_and_every_kind_of_cell() -> None:
    """A table that lost a column would still be fulfilled."""
    verdicts = {cell: expected(cell) for cell in every_cell()}
    assert len(PROFILES) * len(AUDIENCES) * len(SCOPES) * len(CONDITIONS) == len(verdicts)
    assert set(FAULTS) <= set(CONDITIONS)
    codes = {found.code for found in verdicts.values()}
    assert {
        "",
        "token.malformed",
        "token.scope",
        "token.audience",
        *(fault.code for fault in FAULTS.values()),
    } == codes
    assert {"", "at+jwt", "plain", "scitokens", "wlcg"} == {found.profile for found in verdicts.values()}
