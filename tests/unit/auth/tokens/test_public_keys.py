"""Which of the keys that an issuer publishes are used."""

import json

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from joserfc.jwk import ECKey, OctKey, OKPKey
from tests.conformance.token_cells import ec_key, encoded, public, rsa_key

from kettle.auth.tokens.checking.public_keys import key_set


def weak() -> dict[str, object]:
    """A key of 1024 bits, with a zero before its modulus so that it seems longer."""
    modulus = rsa.generate_private_key(65537, 1024).public_key().public_numbers().n
    return {"kty": "RSA", "kid": "weak", "e": "AQAB", "n": encoded(modulus.to_bytes(256))}


def names(*keys: object) -> list[tuple[str, str]]:
    return [(key.kid, key.algorithm) for key in key_set(json.dumps({"keys": keys}).encode()).keys]


def test_keys_of_the_accepted_kinds_are_used() -> None:
    """With or without the algorithm and the use that they may name."""
    bare = {
        name: value for name, value in public(ec_key("e1")).items() if name in {"kty", "crv", "x", "y", "kid"}
    }
    assert [("e1", "ES256"), ("r1", "RS256"), ("r1", "RS256")] == names(
        bare, public(rsa_key("r1")), public(rsa_key("r1"), alg="RS256", x5t="x")
    )


@pytest.mark.parametrize(
    "key",
    [
        public(ec_key("e1"), use="enc"),
        public(ec_key("e1"), alg="ES384"),
        public(rsa_key("r1"), alg="RS512"),
        public(rsa_key("r1"), alg="PS256"),
        {**public(ec_key("e1")), "key_ops": ["sign"]},
        {**ec_key("e1").as_dict(private=True)},
        {**rsa_key("r1").as_dict(private=True)},
        ECKey.generate_key("P-384").as_dict(private=False),
        OKPKey.generate_key("Ed25519").as_dict(private=False),
        OctKey.generate_key(256).as_dict(),
        weak(),
        {**public(ec_key("e1")), "x": public(ec_key("e1"))["y"], "y": public(ec_key("e1"))["x"]},
        {**public(ec_key("e1")), "x": "!"},
        {**public(rsa_key("r1")), "n": ""},
        {**public(ec_key("e1")), "kid": 7},
        {"kty": "RSA"},
        {"kid": "e1"},
        "key",
        None,
    ],
)
def test_other_keys_are_left_out(key: object) -> None:
    """
    Keys of other kinds, for other uses, too weak, broken, or with their secret half for everybody to see.
    """
    assert [("e2", "ES256")] == names(key, public(ec_key("e2")))


@pytest.mark.parametrize("document", [b"", b"[]", b"{}", b'{"keys": 5}', b"<html>", b"\xff", b"[" * 100_000])
def test_what_is_no_document_of_keys_is_refused(document: bytes) -> None:
    """With a sentence, and not with what was wrong with its bytes."""
    with pytest.raises(ValueError, match="no JWK set"):
        key_set(document)


def test_there_is_an_end_to_keys() -> None:
    """So an issuer cannot choose how long we read."""
    with pytest.raises(ValueError, match="101 keys"):
        names(*[{"kty": "EC"}] * 101)


def test_only_some_keys_of_one_name_are_tried() -> None:
    """More would let an issuer choose how long we work on each token."""
    same = [public(ec_key(f"k{number}"), kid="same") for number in range(6)]
    keys = key_set(json.dumps({"keys": same}).encode())
    assert 4 == len(keys.candidates({"alg": "ES256", "kid": "same"}))
