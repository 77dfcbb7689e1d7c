"""IDTOKENS beside those that HTCondor's library makes of the same key, byte for byte."""

import json
import os
import subprocess
import sys
from base64 import urlsafe_b64decode
from pathlib import Path
from typing import Final

import msgspec
import pytest
from tests.conformance.idtoken_reference import Order, library

from kettle.auth.idtokens.checking import verify
from kettle.auth.idtokens.idtoken import IdTokenClaims, create
from kettle.auth.idtokens.pool_key import read_key, scrambled, signing_secret

TOP: Final = Path(__file__).parents[2]
DOMAIN: Final = "pool.example.org"
KEYS: Final = {
    "POOL": b"secret",
    "short": b"x",
    "zeros": b"with\0zeros\0\xff" * 3,
    "long": bytes(range(256)) * 4,
}
ORDERS: Final = [
    *(Order("ada@pool.example.org", key) for key in KEYS),
    *(Order("ada@elsewhere", key, ["READ", "ADVERTISE_STARTD"], 600) for key in KEYS),
    Order("a/b@c", "POOL", ["DAEMON"]),
    Order("condor@pool.example.org", "short", [], 0),
    Order("nobody@x", "there is none"),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str | None]]:
    """A directory of keys, and what HTCondor's library made with them."""
    if library() is None:
        pytest.skip("package htcondor, the reference, exists for Linux on x86-64 only")
    if os.geteuid() != 0:
        pytest.skip("HTCondor's library uses keys of root only")
    place = tmp_path_factory.mktemp("idtokens")
    for name, key in KEYS.items():
        (place / name).write_bytes(scrambled(key))
        (place / name).chmod(0o600)
    config = place.with_suffix(".config")
    config.write_text(
        f"TRUST_DOMAIN = {DOMAIN}\nSEC_PASSWORD_DIRECTORY = {place}\n"
        f"SEC_TOKEN_POOL_SIGNING_KEY_FILE = {place}/POOL\nLOG = {place}\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "tests.conformance.idtoken_reference"],
        input=msgspec.json.encode(ORDERS),
        env={**os.environ, "CONDOR_CONFIG": str(config)},
        cwd=TOP,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return place, msgspec.json.decode(done.stdout, type=list[str | None])


def test_a_token_of_htcondor_is_accepted(made: tuple[Path, list[str | None]]) -> None:
    """With the key from the file that HTCondor reads."""
    place, tokens = made
    secrets = {name: signing_secret(name, read_key(place / name)) for name in KEYS}
    for order, token in zip(ORDERS, tokens, strict=True):
        if order.key not in KEYS:
            assert token is None
            continue
        assert token is not None
        claims = json.loads(urlsafe_b64decode(token.split(".")[1] + "=="))
        found = verify(token, DOMAIN, secrets, claims["iat"])
        assert (order.identity, order.key, claims["jti"]) == (found.identity, found.key, found.id)
        assert (frozenset(order.levels) or None) == found.levels
        assert (None if order.lifetime < 0 else order.lifetime) == (
            None if found.expires is None else found.expires - found.issued
        )


def test_we_make_the_same_token(made: tuple[Path, list[str | None]]) -> None:
    """Of the same key, time and name every byte is the same, so HTCondor accepts ours."""
    place, tokens = made
    for order, token in zip(ORDERS, tokens, strict=True):
        if token is None:
            continue
        theirs = json.loads(urlsafe_b64decode(token.split(".")[1] + "=="))
        claims = IdTokenClaims(
            trust_domain=DOMAIN,
            identity=order.identity,
            issued=theirs["iat"],
            id=theirs["jti"],
            lifetime=None if order.lifetime < 0 else order.lifetime,
            levels=order.levels,
        )
        assert token == create(claims, order.key, signing_secret(order.key, read_key(place / order.key)))
        assert len(os.urandom(16).hex()) == len(theirs["jti"])
