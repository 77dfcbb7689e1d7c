"""Whatever is shown as a token is either refused with a code or is one, and two readers see the same."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conformance.token_cells import ec_key, public, signed

from kettle.auth.idtokens import checking
from kettle.auth.tokens.capabilities import covers, storage_allows
from kettle.auth.tokens.checking.issuers import Issuer
from kettle.auth.tokens.checking.parsing import parse
from kettle.auth.tokens.checking.public_keys import key_set
from kettle.auth.tokens.checking.verification import verify
from kettle.auth.tokens.verified import TokenCode, TokenError, VerifiedToken

NOW: Final = 1_800_000_000
ISSUER: Final = Issuer(url="https://vo.example.org", audiences=("us",))
KEYS: Final = key_set(json.dumps({"keys": [public(ec_key("e1"))]}).encode())
GOOD: Final[dict[str, object]] = {
    "iss": ISSUER.url,
    "sub": "ada",
    "aud": "us",
    "iat": NOW,
    "exp": NOW + 60,
    "jti": "1",
    "scope": "compute.read",
    "wlcg.ver": "1.0",
}
TOKEN: Final = signed({"alg": "ES256", "kid": "e1"}, GOOD, ec_key("e1"))

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def judged(token: str) -> VerifiedToken | TokenCode:
    try:
        return verify(parse(token), ISSUER, KEYS, NOW)
    except TokenError as error:
        return TokenCode(error.code)


@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda data: urlsafe_b64encode(data).decode()))
def test_any_text_is_refused_with_a_code(text: str) -> None:
    """Nothing else comes out of it, in either kind of token."""
    assert isinstance(judged(text), TokenCode)
    with pytest.raises(TokenError):
        checking.verify(text, "pool", {"POOL": b"x" * 32}, NOW)


@given(st.integers(0, len(TOKEN) - 1), st.characters(codec="ascii"))
def test_a_token_with_another_character_is_no_token(at: int, character: str) -> None:
    """Not one character of a token can be changed, not even to another spelling of its bytes."""
    changed = f"{TOKEN[:at]}{character}{TOKEN[at + 1 :]}"
    assert (changed == TOKEN) == isinstance(judged(changed), VerifiedToken)


@given(st.sampled_from(sorted(GOOD)), values)
def test_claims_of_any_form_are_accepted_or_refused_with_a_code(name: str, value: object) -> None:
    """
    Nobody who signs such a token makes another error come out, and what is accepted has the forms that others rely
    on.
    """
    found = judged(signed({"alg": "ES256", "kid": "e1"}, {**GOOD, name: value}, ec_key("e1")))
    if isinstance(found, VerifiedToken):
        assert found.subject.isascii()
        assert found.subject.isprintable()
        assert found.expires + 60 > NOW
        assert set(found.audience) & {"us", "https://wlcg.cern.ch/jwt/v1/any", "ANY"}


@given(values)
def test_what_is_read_is_what_other_readers_read(value: object) -> None:
    """The decoder of msgspec, and that of Python, have the same claims as we."""
    token = signed({"alg": "ES256"}, {"value": value}, ec_key("e1"))
    try:
        found = parse(token).claims
    except TokenError:
        return
    data = urlsafe_b64decode(f"{token.split('.')[1]}==")
    assert found == json.loads(data)
    assert found == msgspec.json.decode(data)


paths = (
    st.lists(st.sampled_from(["a", "ab", "b", "..", ".", "", "%2e%2e"]), max_size=4)
    .map("/".join)
    .map("/{}".format)
)


@given(paths, paths, st.sampled_from(["read", "stage", "create", "modify", "stat"]))
def test_no_path_leads_out_of_its_scope(allowed: str, path: str, operation: str) -> None:
    """What a scope allows is below it, part by part, and who may have a scope may have what it allows."""
    scope = f"storage.{operation}:{allowed}"
    if storage_allows([scope], "stat", path):
        parts, within = path.split("/"), allowed.rstrip("/").split("/")
        assert within == parts[: len(within)]
        assert ".." not in parts
        assert covers(scope, f"storage.stat:{path}")
