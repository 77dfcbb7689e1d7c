"""
How long identity takes: JSON on standard output.

    python -m tests.performance.identity

A check of a token is the whole way from its text to what it is and allows, with keys that are known.  `signature_us` is, in turn
with it in the same run, what the signature alone takes, which no implementation can save.
"""

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import Mapping
from typing import Any, Final

from tests.conformance.token_cells import ec_key, public, rsa_key, signed

from kettle.auth.idtokens import checking
from kettle.auth.idtokens.idtoken import IdTokenClaims, create
from kettle.auth.tokens.capabilities import rights
from kettle.auth.tokens.checking.issuers import Issuer, Issuers
from kettle.auth.tokens.checking.parsing import parse
from kettle.auth.tokens.checking.public_keys import key_set
from kettle.auth.tokens.keys.discovery import FetchError
from kettle.auth.tokens.keys.key_cache import KeyCache
from kettle.auth.tokens.verifier import Verifier
from kettle.testing.measurements import say, summary

NOW: Final = 1_800_000_000
ISSUER: Final = Issuer(url="https://vo.example.org", audiences=("ce.example.org:9619",))
CLAIMS: Final[Mapping[str, object]] = {
    "iss": ISSUER.url,
    "sub": "0c6f2a1e-1c0d-4b36-9d0e-6f6f2e7f0a51",
    "aud": "ce.example.org:9619",
    "iat": NOW,
    "nbf": NOW,
    "exp": NOW + 3600,
    "jti": "b76e209f-e300-4ae5-189f-5d94b5f65910",
    "wlcg.ver": "1.0",
}
SCOPES: Final = "compute.read compute.create compute.modify compute.cancel storage.read:/"


class Offline:
    """No issuer is asked: all keys are known."""

    async def document(self, url: str) -> bytes:
        """Never."""
        raise FetchError(f"{url} is not asked")


def texts() -> dict[str, str]:
    """The tokens that are checked."""
    capable = {**CLAIMS, "scope": SCOPES}
    grouped = {**CLAIMS, "wlcg.groups": [f"/vo/group-{number}" for number in range(200)]}
    return {
        "es256": signed({"alg": "ES256", "kid": "e1"}, capable, ec_key("e1")),
        "rs256": signed({"alg": "RS256", "kid": "r1"}, capable, rsa_key("r1")),
        "es256_with_200_groups": signed({"alg": "ES256", "kid": "e1"}, grouped, ec_key("e1")),
    }


async def measured(rounds: int, checks: int) -> dict[str, Any]:
    """Microseconds of each kind of token: the median and the 99th of 100 checks, over the rounds."""
    keys = key_set(json.dumps({"keys": [public(ec_key("e1")), public(rsa_key("r1"))]}).encode())
    verifier = Verifier(Issuers([ISSUER]), KeyCache(Offline(), own={ISSUER.url: keys}))
    found: dict[str, Any] = {}
    for name, text in texts().items():
        say(f"checking {checks} tokens, {rounds} times: {name}")
        middle: list[float] = []
        high: list[float] = []
        bare: list[float] = []
        parsed = parse(text)
        for _ in range(rounds):
            whole: list[float] = []
            alone: list[float] = []
            for _ in range(checks):
                began = time.perf_counter()
                rights(await verifier.verify(text, NOW), ISSUER)
                between = time.perf_counter()
                keys.candidates(parsed.header)[0].verifies(parsed.signed, parsed.signature)
                whole.append(between - began)
                alone.append(time.perf_counter() - between)
            middle.append(statistics.median(whole) * 1e6)
            high.append(statistics.quantiles(whole, n=100)[98] * 1e6)
            bare.append(statistics.median(alone) * 1e6)
        found[name] = {
            "bytes": len(text),
            "check_us_p50": summary(middle, 1),
            "check_us_p99": summary(high, 1),
            "signature_us": summary(bare, 1),
        }
    return found


def idtokens(rounds: int, checks: int) -> dict[str, Any]:
    """Microseconds of a token that the pool's key has signed."""
    secret = b"k" * 32
    claims = IdTokenClaims(trust_domain="pool", identity="ada@pool", issued=NOW, id="0" * 32, levels=["READ"])
    text = create(claims, "POOL", secret)

    def one() -> float:
        began = time.perf_counter()
        for _ in range(checks):
            checking.verify(text, "pool", {"POOL": secret}, NOW)
        return (time.perf_counter() - began) / checks * 1e6

    return {"bytes": len(text), "check_us": summary((one() for _ in range(rounds)), 1)}


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--checks", type=int, default=2000)
    given = parser.parse_args()
    report = {
        "tokens": asyncio.run(measured(given.rounds, given.checks)),
        "idtokens": idtokens(given.rounds, given.checks),
    }
    print(json.dumps(report, indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
