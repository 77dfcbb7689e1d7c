"""Tokens of an OpenID provider that others have written (npm: oidc-provider), over its own server."""

import time

import pytest

from kettle.auth.tokens.capabilities import rights
from kettle.auth.tokens.checking.issuers import Issuer, Issuers
from kettle.auth.tokens.keys.fetching import FetchLimits, HttpFetcher
from kettle.auth.tokens.keys.key_cache import KeyCache
from kettle.auth.tokens.verified import TokenError
from kettle.auth.tokens.verifier import Verifier

from .provider import AUDIENCE, keys, provider

MINUTE = 61.0


@pytest.mark.parametrize("algorithm", ["ES256", "RS256"])
async def test_its_tokens_are_accepted_also_after_it_has_changed_its_keys(algorithm: str) -> None:
    """
    Keys are found by its own description; while it is down its last keys are used; new keys are learned by their names.
    """
    audience = f"{AUDIENCE}?alg={algorithm}"
    now = time.time()
    async with HttpFetcher.open(FetchLimits(plain_loopback=True)) as fetcher:
        cache = KeyCache(fetcher)
        async with provider(keys(1)) as one:
            issuer = Issuer(url=one.url, audiences=(audience,))
            verifier = Verifier(Issuers([issuer]), cache)
            first = await one.token("condor:/READ", audience)
            found = await verifier.verify(first, now)
            assert ("at+jwt", "robot") == (found.profile, found.subject)
            assert {"READ"} == rights(found, issuer).levels
            with pytest.raises(TokenError) as elsewhere:
                await verifier.verify(await one.token("condor:/READ", "https://elsewhere.example.org/"), now)
            assert elsewhere.value.code == "token.audience"
        assert "robot" == (await verifier.verify(first, now)).subject  # it is down
        async with provider(keys(2), port=int(one.url.rpartition(":")[2])) as again:
            assert one.url == again.url
            second = await again.token("condor:/READ condor:/WRITE", audience)
            later = await verifier.verify(second, now + MINUTE)
            assert {"READ", "WRITE"} == rights(later, issuer).levels
            with pytest.raises(TokenError) as replaced:
                await verifier.verify(first, now + MINUTE)
            assert replaced.value.code == "token.key_unknown"
    assert {one.url: 2} == cache.counts.fetched
