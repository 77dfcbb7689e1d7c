"""
The matrix of tokens: every profile, audience, set of scopes and condition, with the tokens of the cells.
"""

import hmac
import json
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import product
from typing import Final, NamedTuple

from joserfc.jwk import ECKey, RSAKey
from joserfc.jws import JWSRegistry

HERE: Final = "ce.example.org:9619"
WLCG_ANY: Final = "https://wlcg.cern.ch/jwt/v1/any"

PROFILES: Final[Mapping[str, tuple[dict[str, object], dict[str, object]]]] = {
    "scitokens": ({"typ": "JWT"}, {"ver": "scitoken:2.0"}),
    "wlcg": ({}, {"wlcg.ver": "1.0"}),
    "wlcg-1.1": ({"typ": "at+jwt"}, {"wlcg.ver": "1.1"}),
    "at+jwt": ({"typ": "at+jwt"}, {"client_id": "somebody"}),
    "plain": ({"typ": "JWT"}, {}),
}
"""What a token of each has in its header and its claims; WLCG 1.1 is told from 1.0 by the version that a token may say."""

AUDIENCES: Final[Mapping[str, object]] = {
    "exact": HERE,
    "list": ["https://elsewhere.example.org", HERE],
    "ANY": "ANY",
    "WLCG any": WLCG_ANY,
    "list with ANY": ["https://elsewhere.example.org", "ANY"],
    "capitals": HERE.upper(),
    "wrong": "https://elsewhere.example.org",
    "absent": None,
}

SCOPES: Final[Mapping[str, str | None]] = {
    "absent": None,
    "openid": "openid profile",
    "read": "condor:/READ",
    "read and write": "condor:/READ condor:/WRITE",
    "advertise": "condor:/ADVERTISE_STARTD",
    "no level": "condor:/NOBODY_KNOWS_IT",
    "compute.read": "compute.read",
    "two of three": "compute.create compute.modify",
    "three": "compute.create compute.modify compute.cancel",
    "all compute": "compute.read compute.create compute.modify compute.cancel",
    "storage": "storage.read:/data storage.create:/data/new",
    "storage without path": "storage.read compute.read",
}


class Cell(NamedTuple):
    """One of the matrix."""

    profile: str
    audience: str
    scopes: str
    condition: str


class Draft(NamedTuple):
    """A token that is still to be signed."""

    header: dict[str, object]
    claims: dict[str, object]
    now: int


class Condition(NamedTuple):
    """What is special of a token or of its issuer."""

    sign: Callable[[Draft], str]
    issuer: str = "https://vo.example.invalid/"
    has_reference: bool = True
    """Whether other implementations can be asked about it without a network."""


@cache
def ec_key(name: str) -> ECKey:
    """An EC key for this run."""
    return ECKey.generate_key("P-256", {"kid": name})


@cache
def rsa_key(name: str) -> RSAKey:
    """An RSA key for this run."""
    return RSAKey.generate_key(2048, {"kid": name})


def public(key: ECKey | RSAKey, **more: str) -> dict[str, object]:
    """As an issuer publishes it."""
    return {**key.as_dict(private=False), "use": "sig", **more}


def encoded(data: bytes) -> str:
    """In base64, as in tokens."""
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def signed(
    header: Mapping[str, object],
    claims: Mapping[str, object] | str,
    key: ECKey | RSAKey | bytes,
    algorithm: str = "",
) -> str:
    """A token, whatever its header says; bytes are the secret of HS256."""
    text = claims if isinstance(claims, str) else json.dumps(claims, ensure_ascii=False)
    data = f"{encoded(json.dumps(header).encode())}.{encoded(text.encode())}"
    if isinstance(key, bytes):
        return f"{data}.{encoded(hmac.digest(key, data.encode(), 'sha256'))}"
    return (
        f"{data}.{encoded(JWSRegistry.algorithms[algorithm or str(header['alg'])].sign(data.encode(), key))}"
    )


def _ordinary(draft: Draft, **claims: object) -> str:
    return signed({"alg": "ES256", "kid": "e1", **draft.header}, {**draft.claims, **claims}, ec_key("e1"))


def _saying(**claims: object) -> Callable[[Draft], str]:
    return lambda draft: _ordinary(draft, **claims)


def _rsa(draft: Draft) -> str:
    return signed({"alg": "RS256", "kid": "r1", **draft.header}, draft.claims, rsa_key("r1"))


def _by(key: str, named: str) -> Callable[[Draft], str]:
    return lambda draft: signed({"alg": "ES256", "kid": named, **draft.header}, draft.claims, ec_key(key))


def _times(**offsets: int) -> Callable[[Draft], str]:
    return lambda draft: _ordinary(draft, **{name: draft.now + offset for name, offset in offsets.items()})


def _none(draft: Draft) -> str:
    return (
        signed({"alg": "none", "kid": "e1", **draft.header}, draft.claims, ec_key("e1"), "ES256").rpartition(
            "."
        )[0]
        + "."
    )


def _hmac_with_public_key(draft: Draft) -> str:
    secret = rsa_key("r1").as_pem(private=False)
    return signed({"alg": "HS256", "kid": "r1", **draft.header}, draft.claims, secret)


def _critical(draft: Draft) -> str:
    header = {
        "alg": "ES256",
        "kid": "e1",
        "crit": ["urn:example:must"],
        "urn:example:must": True,
        **draft.header,
    }
    return signed(header, draft.claims, ec_key("e1"))


def _repeated_key(draft: Draft) -> str:
    text = json.dumps(draft.claims)
    return signed({"alg": "ES256", "kid": "e1", **draft.header}, f'{{"sub": "root", {text[1:]}', ec_key("e1"))


def _changed(draft: Draft) -> str:
    head, claims, signature = _ordinary(draft).split(".")
    other = "A" if signature[5] != "A" else "B"
    return f"{head}.{claims}.{signature[:5]}{other}{signature[6:]}"


CONDITIONS: Final[Mapping[str, Condition]] = {
    "good, ES256": Condition(_ordinary),
    "good, RS256": Condition(_rsa),
    "expired": Condition(_times(iat=-7200, nbf=-7200, exp=-3600)),
    "expired within skew": Condition(_times(iat=-700, nbf=-700, exp=-30)),
    "not before in the future": Condition(_times(nbf=3600, exp=7200)),
    "not before within skew": Condition(_times(nbf=30)),
    "issued in the future": Condition(_times(iat=3600, exp=7200)),
    "bad signature": Condition(_changed),
    "signed by another": Condition(_by("stranger", "e1")),
    "unknown key": Condition(_by("stranger", "stranger")),
    "new key, rotated an hour ago": Condition(
        _by("new", "new"), "https://rotated.example.invalid", has_reference=False
    ),
    "old key, rotated an hour ago": Condition(
        _by("old", "old"), "https://rotated.example.invalid", has_reference=False
    ),
    "issuer down, keys known": Condition(_ordinary, "https://down.example.invalid", has_reference=False),
    "issuer down for seven hours": Condition(
        _ordinary, "https://long-down.example.invalid", has_reference=False
    ),
    "issuer down for two days": Condition(_ordinary, "https://gone.example.invalid", has_reference=False),
    "issuer down, unknown key": Condition(
        _by("new", "new"), "https://down.example.invalid", has_reference=False
    ),
    "issuer down, nothing known": Condition(_ordinary, "https://cold.example.invalid", has_reference=False),
    "issuer redirects to another host": Condition(
        _ordinary, "https://redirects.example.invalid", has_reference=False
    ),
    "issuer not trusted": Condition(_ordinary, "https://stranger.example.invalid", has_reference=False),
    "two keys of one name, first": Condition(_by("first", "same"), "https://twice.example.invalid"),
    "two keys of one name, second": Condition(_by("second", "same"), "https://twice.example.invalid"),
    "alg none": Condition(_none),
    "HS256 with the public key": Condition(_hmac_with_public_key),
    "crit": Condition(_critical),
    "20 kB": Condition(_saying(jti="x" * 20_000)),
    "a key twice": Condition(_repeated_key),
    "subject not ASCII": Condition(_saying(sub="zoë")),
}


def cells(condition: str) -> Iterator[Cell]:
    """All cells of one condition."""
    for profile, audience, scopes in product(PROFILES, AUDIENCES, SCOPES):
        yield Cell(profile, audience, scopes, condition)


def token(cell: Cell, now: int, *, groups: bool = True) -> str:
    """
    The token of a cell. `groups`: whether it has those of its profile, of which libSciTokens knows only WLCG's.
    """
    header, own = PROFILES[cell.profile]
    condition = CONDITIONS[cell.condition]
    claims: dict[str, object] = {
        "iss": condition.issuer,
        "sub": "ada",
        "aud": AUDIENCES[cell.audience],
        "iat": now - 10,
        "nbf": now - 10,
        "exp": now + 1200,
        "jti": "1f0a",
        "scope": SCOPES[cell.scopes],
        **own,
    }
    if "wlcg.ver" in own:
        claims["wlcg.groups"] = ["/vo", "/vo/production"]
    elif groups:
        claims["groups"] = ["physics"]
    return condition.sign(
        Draft(header, {name: value for name, value in claims.items() if value is not None}, now)
    )
