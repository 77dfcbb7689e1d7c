"""What a token must say, beyond the cells of the matrix."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from tests.conformance.token_cells import ec_key, public, rsa_key, signed

from kettle.auth.tokens.checking.issuers import Issuer, Issuers
from kettle.auth.tokens.checking.parsing import parse
from kettle.auth.tokens.checking.public_keys import KeySet, key_set
from kettle.auth.tokens.checking.times import SKEW_S
from kettle.auth.tokens.checking.verification import verify
from kettle.auth.tokens.verified import Profile, TokenCode, TokenError, VerifiedToken

NOW: Final = 1_800_000_000
URL: Final = "https://vo.example.org/"
ISSUER: Final = Issuer(url=URL, audiences=("condor://ce.example.org", "ce.example.org:9619"))
CLAIMS: Final[Mapping[str, object]] = {
    "iss": URL,
    "sub": "ada",
    "aud": "ce.example.org:9619",
    "iat": NOW,
    "exp": NOW + 600,
    "jti": "1",
    "wlcg.ver": "1.0",
}


def keys() -> KeySet:
    return key_set(json.dumps({"keys": [public(ec_key("e1")), public(rsa_key("r1"))]}).encode())


def checked(
    *, without: Any = "", issuer: Any = ISSUER, typ: Any = None, now: Any = NOW, **claims: Any
) -> VerifiedToken:
    """The good token with other claims, checked."""
    header = {"alg": "ES256", "kid": "e1"} | ({} if typ is None else {"typ": typ})
    said = {name: value for name, value in {**CLAIMS, **claims}.items() if name != without}
    return verify(parse(signed(header, said, ec_key("e1"))), issuer, keys(), now)


def refusal(**given: Any) -> str:
    with pytest.raises(TokenError) as caught:
        checked(**given)
    return caught.value.code


def test_a_good_token_says_who_and_what() -> None:
    """All that others ask about a token is in the value, with every claim as it was."""
    found = checked(
        aud=["x", "condor://ce.example.org"], scope="compute.read  storage.read:/a", more={"a": [1]}
    )
    assert (URL, "ada", "wlcg", "1") == (found.issuer, found.subject, found.profile, found.id)
    assert ("x", "condor://ce.example.org") == found.audience
    assert ("compute.read", "storage.read:/a") == found.scopes
    assert (NOW, NOW + 600) == (found.issued, found.expires)
    assert {"a": [1]} == found.claims["more"]


@pytest.mark.parametrize(
    ("profile", "own", "needed", "spared"),
    [
        ("wlcg", {"wlcg.ver": "1.1"}, ("sub", "exp", "iat", "aud", "jti"), ("nbf", "scope")),
        ("scitokens", {"wlcg.ver": None, "ver": "scitoken:2.0"}, ("exp", "iat", "aud"), ("sub", "jti")),
        ("at+jwt", {"wlcg.ver": None, "typ": "at+jwt"}, ("sub", "exp", "iat", "aud", "jti"), ("scope",)),
        ("plain", {"wlcg.ver": None}, ("sub", "exp", "iat", "aud"), ("jti", "scope")),
    ],
)
def test_each_profile_demands_its_claims(
    profile: str, own: dict[str, object], needed: tuple[str, ...], spared: tuple[str, ...]
) -> None:
    """A token without one of them is malformed; without another claim it is good."""
    drop = "wlcg.ver" if own.get("wlcg.ver", "") is None else ""
    said = {name: value for name, value in CLAIMS.items() if name != drop}
    header = {"alg": "ES256", "kid": "e1"} | ({"typ": own["typ"]} if "typ" in own else {})
    said |= {name: value for name, value in own.items() if name not in {"typ", drop}}

    def of(without: str) -> VerifiedToken:
        left = {name: value for name, value in said.items() if name != without}
        return verify(parse(signed(header, left, ec_key("e1"))), ISSUER, keys(), NOW)

    assert profile == of("").profile
    for name in spared:
        of(name)
    for name in needed:
        with pytest.raises(TokenError) as caught:
            of(name)
        assert caught.value.code == "token.malformed"
        assert name in str(caught.value)


@pytest.mark.parametrize(
    ("version", "accepted"),
    [
        ("1.0", True),
        ("1.1", True),
        ("1.12", True),
        ("2.0", False),
        ("1", False),
        (1.0, False),
        ("1.0 ", False),
    ],
)
def test_versions_of_wlcg(version: object, *, accepted: bool) -> None:
    """Each 1.x is read, since 1.1 says 1.0 as well as 1.1; no other major version is."""
    if accepted:
        assert "wlcg" == checked(**{"wlcg.ver": version}).profile
    else:
        assert "token.profile" == refusal(**{"wlcg.ver": version})


@pytest.mark.parametrize(
    ("version", "profile"),
    [("scitoken:2.0", "scitokens"), ("scitokens:2.0", "scitokens"), ("2.0", "plain"), (3, "plain")],
)
def test_versions_of_scitokens(version: object, profile: str) -> None:
    """
    Other issuers have versions of their own in the claim of this name, which say nothing about the form of the token.
    """
    assert profile == checked(without="wlcg.ver", ver=version).profile


@pytest.mark.parametrize("version", ["scitoken:1.0", "scitoken:3.0", "scitokens:2.1"])
def test_other_versions_of_scitokens_are_refused(version: str) -> None:
    """They have other rules."""
    assert "token.profile" == refusal(without="wlcg.ver", ver=version)


def test_a_token_is_of_one_profile() -> None:
    """One that claims two is refused; an access token of RFC 9068 may be one of WLCG."""
    assert "token.profile" == refusal(ver="scitoken:2.0")
    assert "wlcg" == checked(typ="at+jwt").profile


@pytest.mark.parametrize("kind", ["logout+jwt", "dpop+jwt", "secevent+jwt", "foo", "", 3])
def test_tokens_for_other_uses_are_refused(kind: object) -> None:
    """An issuer signs more than access tokens, and says so in `typ`."""
    assert "token.profile" == refusal(typ=kind)


@pytest.mark.parametrize("kind", ["JWT", "jwt", "at+jwt", "AT+JWT", "application/at+jwt"])
def test_access_tokens_are_told_in_any_capitals(kind: str) -> None:
    """As media types are."""
    checked(typ=kind)


def test_profiles_may_be_chosen_per_issuer() -> None:
    """A token of another profile is refused, even though it is good."""
    only: tuple[Profile, ...] = ("at+jwt", "scitokens")
    assert "token.profile" == refusal(
        issuer=Issuer(url=URL, audiences=("ce.example.org:9619",), profiles=only)
    )


def test_tokens_for_any_service_may_be_refused() -> None:
    """A site that will not accept what another service could have stolen says so."""
    anybody = "https://wlcg.cern.ch/jwt/v1/any"
    checked(aud=anybody)
    strict = Issuer(url=URL, audiences=ISSUER.audiences, any_audience=False)
    assert "token.audience" == refusal(aud=anybody, issuer=strict)


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": str(NOW + 600)},
        {"exp": True},
        {"exp": None},
        {"exp": -1},
        {"exp": 10**15},
        {"iat": "now"},
        {"nbf": [NOW]},
        {"aud": []},
        {"aud": ""},
        {"aud": [1]},
        {"aud": {"a": 1}},
        {"sub": ""},
        {"sub": 5},
        {"sub": "a" * 256},
        {"sub": "a\nb"},
        {"sub": "\u0430da"},
        {"jti": ["1"]},
        {"scope": ["compute.read"]},
        {"scope": "compute.read\nroot"},
        {"wlcg.groups": "/cms"},
        {"wlcg.groups": ["cms"]},
        {"wlcg.groups": ["/cms", 5]},
        {"groups": "physics"},
        {"groups": ["a\x1b[2J"]},
    ],
)
def test_claims_of_another_form_are_malformed(claims: dict[str, object]) -> None:
    """Nothing is guessed."""
    assert "token.malformed" == refusal(**claims)


def test_times_have_a_tolerance_on_both_sides() -> None:
    """Up to the last second of it, for each of the three times; fractions of seconds are numbers, too."""
    end = NOW + 600
    checked(now=end + SKEW_S - 0.5)
    assert "token.expired" == refusal(now=end + SKEW_S)
    checked(nbf=NOW + SKEW_S)
    assert "token.not_yet_valid" == refusal(nbf=NOW + SKEW_S + 1)
    checked(iat=NOW + SKEW_S)
    assert "token.not_yet_valid" == refusal(iat=NOW + SKEW_S + 1)
    assert NOW + 600 == checked(exp=NOW + 600.75).expires


def test_groups_are_those_of_the_token_and_no_others() -> None:
    """A member of `/cms/uscms` is not one of `/cms`, and who shows a capability shows no group."""
    assert ("/cms/uscms",) == checked(**{"wlcg.groups": ["/cms/uscms"]}).groups
    assert () == checked(scope="storage.read:/x", **{"wlcg.groups": ["/cms"]}).groups
    assert ("/cms",) == checked(scope="openid wlcg.groups:/cms", **{"wlcg.groups": ["/cms"]}).groups
    assert ("a", "b c") == checked(groups=["a", "b c"]).groups


def test_a_token_that_is_bound_to_a_key_is_refused() -> None:
    """A thief could not use it with a service that asks for the proof, so nobody can here."""
    assert "token.critical" == refusal(cnf={"jkt": "x"})


def test_a_token_without_the_name_of_its_key() -> None:
    """It is checked if its issuer has one key only."""
    token = parse(signed({"alg": "ES256"}, CLAIMS, ec_key("e1")))
    alone = key_set(json.dumps({"keys": [public(ec_key("e1"))]}).encode())
    assert "ada" == verify(token, ISSUER, alone, NOW).subject
    with pytest.raises(TokenError) as caught:
        verify(token, ISSUER, keys(), NOW)
    assert caught.value.code == "token.key_unknown"


def test_an_issuer_speaks_for_itself_only() -> None:
    """A token that its key has signed and that names another issuer is not one of that other."""
    assert "token.issuer_unknown" == refusal(iss="https://other.example.org/")


def test_a_key_is_for_one_algorithm() -> None:
    """A token that names an RSA key and says ES256 is refused before anything is computed."""
    token = parse(signed({"alg": "ES256", "kid": "r1"}, CLAIMS, ec_key("e1")))
    with pytest.raises(TokenError) as caught:
        verify(token, ISSUER, keys(), NOW)
    assert caught.value.code == "token.alg"


def test_the_issuer_that_was_meant_is_named() -> None:
    """A slash too many is the usual mistake, and the issuer is not trusted for being near."""
    with pytest.raises(
        TokenError, match=r"https://vo\.example\.org/ is, and the URL must be the same"
    ) as caught:
        Issuers([ISSUER]).of("https://vo.example.org")
    assert caught.value.code == "token.issuer_unknown"
    with pytest.raises(TokenError, match="iss is missing"):
        Issuers([ISSUER]).of(None)


@pytest.mark.parametrize(
    "given",
    [
        {"url": "vo.example.org"},
        {"url": "http://vo.example.org"},
        {"url": "https://vo.example.org/?a=b"},
        {"url": "https://vo.example.org/#a"},
        {"url": "https://me@vo.example.org/"},
        {"url": "https://vo.example.org/a b"},
        {"url": "https://vo.example.org/,x"},
        {"url": "https://[vo/"},
        {"url": "ftp://localhost/"},
        {"url": URL, "audiences": ()},
        {"url": URL, "audiences": ("",)},
        {"url": URL, "profiles": ()},
    ],
)
def test_an_issuer_that_no_token_can_come_from_is_refused(given: dict[str, object]) -> None:
    """With a sentence that has its URL in it, for the one who wrote it down."""
    with pytest.raises(ValueError) as caught:
        Issuer(**{"audiences": ("us",), **given})  # type: ignore[arg-type]
    assert str(given["url"])[:20] in str(caught.value)


def test_one_issuer_is_one_vo() -> None:
    """It is in the table once, and its VO has one name that no claim changes."""
    with pytest.raises(ValueError, match="twice"):
        Issuers([ISSUER, Issuer(url=URL, audiences=("us",), vo="cms")])
    assert URL == ISSUER.named_vo
    assert "cms" == Issuer(url=URL, audiences=("us",), vo="cms").named_vo


def test_the_page_about_tokens_has_each_code() -> None:
    """A reader who has a code finds what it means, and no code that there is not."""
    page = (Path(__file__).parents[4] / "docs/reference/tokens.md").read_text()
    assert {code.value for code in TokenCode} == set(re.findall(r"^\| `(token\.\w+)` \|", page, re.MULTILINE))
