"""When issuers are asked for their keys, and what happens while they do not answer."""

import asyncio
import json
from typing import Final

import pytest
from tests.conformance.token_cells import ec_key, public

from kettle.auth.tokens.checking.public_keys import KeySet, key_set
from kettle.auth.tokens.keys.discovery import FetchError, metadata_urls, published_keys
from kettle.auth.tokens.keys.key_cache import KeyCache
from kettle.auth.tokens.verified import TokenError

ISSUER: Final = "https://vo.example.org/"
HOUR: Final = 3600.0
START: Final = 1_000_000.0


def jwks(*names: str) -> bytes:
    return json.dumps({"keys": [public(ec_key(name)) for name in names]}).encode()


class Network:
    """What an issuer publishes, and how often it was asked."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.asked = 0
        self.down = False
        self.held: asyncio.Event | None = None

    async def document(self, url: str) -> bytes:
        if url.endswith("openid-configuration"):
            self.asked += 1
            if self.held is not None:
                await self.held.wait()
            if self.down:
                raise FetchError("it does not answer")
            return json.dumps({"issuer": ISSUER, "jwks_uri": "https://vo.example.org/jwks"}).encode()
        if self.down or url != "https://vo.example.org/jwks":
            raise FetchError("it does not answer")
        return jwks(*self.names)


async def refused(cache: KeyCache, kid: str, now: float) -> str:
    with pytest.raises(TokenError) as caught:
        await cache.keys(ISSUER, kid, now)
    return caught.value.code


async def test_keys_are_used_for_six_hours() -> None:
    """The issuer is asked once for all checks within that time, and again after it."""
    network = Network("a")
    cache = KeyCache(network)
    for after in (0.0, 1.0, 6 * HOUR - 1):
        assert (await cache.keys(ISSUER, "a", START + after)).has("a")
    assert 1 == network.asked
    await cache.keys(ISSUER, "a", START + 6 * HOUR)
    assert 2 == network.asked
    assert {ISSUER: 2} == cache.counts.fetched


async def test_a_new_key_is_learned_at_once() -> None:
    """
    The first token that names it has the issuer asked; the old key is forgotten if it is not published any longer.
    """
    network = Network("old")
    cache = KeyCache(network)
    await cache.keys(ISSUER, "old", START)
    network.names = ("new",)
    assert (await cache.keys(ISSUER, "new", START + HOUR)).has("new")
    assert not (await cache.keys(ISSUER, "old", START + HOUR + 1)).has("old")


async def test_names_of_keys_that_nobody_has_do_not_make_an_issuer_busy() -> None:
    """No matter how many such tokens come, it is asked once a minute."""
    network = Network("a")
    cache = KeyCache(network)
    await cache.keys(ISSUER, "a", START)
    for second in range(180):
        assert not (await cache.keys(ISSUER, f"forged-{second}", START + second)).has("forged")
    assert 1 + 2 == network.asked
    assert (await cache.keys(ISSUER, "a", START + 180)).has("a")


async def test_last_keys_are_used_while_an_issuer_is_down() -> None:
    """For a day after they were fetched; each such use is counted, and the issuer is tried once a minute."""
    network = Network("a")
    cache = KeyCache(network)
    await cache.keys(ISSUER, "a", START)
    network.down = True
    begin = START + 6 * HOUR
    for second in range(61):
        await cache.keys(ISSUER, "a", begin + second)
    assert {ISSUER: 61} == cache.counts.used_while_down
    assert {ISSUER: 2} == cache.counts.failed
    await cache.keys(ISSUER, "a", START + 24 * HOUR - 1)
    assert "token.keys_unavailable" == await refused(cache, "a", START + 24 * HOUR)
    network.down = False
    assert (await cache.keys(ISSUER, "a", START + 25 * HOUR)).has("a")


async def test_an_unknown_key_of_an_issuer_that_is_down_may_be_good() -> None:
    """A person with such a token is told to try again, and not that it is wrong."""
    network = Network("a")
    cache = KeyCache(network)
    await cache.keys(ISSUER, "a", START)
    network.down = True
    assert "token.keys_unavailable" == await refused(cache, "new", START + 100)
    assert (await cache.keys(ISSUER, "a", START + 101)).has("a")


async def test_an_issuer_of_which_nothing_is_known_is_tried_sooner() -> None:
    """People wait for it, so it is asked again after seconds; the refusal says what is wrong."""
    network = Network("a")
    network.down = True
    cache = KeyCache(network)
    for second in range(10):
        with pytest.raises(TokenError, match=r"cannot be fetched.*does not answer"):
            await cache.keys(ISSUER, "a", START + second)
    assert 2 == network.asked
    network.down = False
    assert (await cache.keys(ISSUER, "a", START + 10)).has("a")


async def test_many_at_once_ask_an_issuer_once() -> None:
    """Those who know the old keys go on with them; the others wait for the one who asks."""
    network = Network("a")
    cache = KeyCache(network)
    await asyncio.gather(*(cache.keys(ISSUER, "a", START) for _ in range(50)))
    assert 1 == network.asked
    network.held = asyncio.Event()
    later = START + 7 * HOUR
    asks = asyncio.create_task(cache.keys(ISSUER, "a", later))
    while network.asked == 1:
        await asyncio.sleep(0)
    assert (await cache.keys(ISSUER, "a", later)).has("a")
    network.names = ("a", "b")
    waits = asyncio.create_task(cache.keys(ISSUER, "b", later))
    network.held.set()
    assert (await waits).has("b")
    assert (await asks).has("b")
    assert 2 == network.asked


async def test_who_gives_up_leaves_the_question_to_the_next() -> None:
    """A check that was cancelled while it asked does not keep the issuer from being asked."""
    network = Network("a")
    network.held = asyncio.Event()
    cache = KeyCache(network)
    asks = asyncio.create_task(cache.keys(ISSUER, "a", START))
    while not network.asked:
        await asyncio.sleep(0)
    asks.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asks
    network.held.set()
    assert (await cache.keys(ISSUER, "a", START)).has("a")


async def test_a_clock_that_was_set_back_does_not_stop_questions() -> None:
    """A time in the future at which an issuer was asked is no reason to leave it alone for years."""
    network = Network("a")
    cache = KeyCache(network)
    await cache.keys(ISSUER, "a", START + 1e9)
    await cache.keys(ISSUER, "a", START)
    assert 2 == network.asked


async def test_own_keys_are_never_asked_for() -> None:
    """Tokens of this pool are checked with what it has; an issuer that was forgotten is asked again."""
    network = Network("a")
    own: KeySet = key_set(jwks("mine"))
    cache = KeyCache(network, own={"https://pool.example.org": own})
    assert own is await cache.keys("https://pool.example.org", "other", START)
    assert 0 == network.asked
    await cache.keys(ISSUER, "a", START)
    cache.forget(ISSUER)
    await cache.keys(ISSUER, "a", START)
    assert 2 == network.asked


class Documents(dict[str, bytes]):
    """Documents by URL."""

    async def document(self, url: str) -> bytes:
        if url not in self:
            raise FetchError(f"{url} is not there")
        return self[url]


def test_an_issuer_describes_itself_at_one_of_two_places() -> None:
    """As OpenID Connect Discovery has it, and as RFC 8414 has it with the path at the end."""
    assert (
        "https://a.example/vo/.well-known/openid-configuration",
        "https://a.example/.well-known/oauth-authorization-server/vo",
    ) == metadata_urls("https://a.example/vo/")


@pytest.mark.parametrize("at", [0, 1])
async def test_keys_are_found_by_either(at: int) -> None:
    """The second place is tried if the first has no description."""
    about = json.dumps({"issuer": ISSUER, "jwks_uri": "https://keys.example/1"}).encode()
    documents = Documents({metadata_urls(ISSUER)[at]: about, "https://keys.example/1": jwks("a")})
    assert (await published_keys(ISSUER, documents)).has("a")


@pytest.mark.parametrize(
    ("about", "keys", "says"),
    [
        ({"issuer": "https://vo.example.org", "jwks_uri": "https://k/1"}, jwks("a"), "describes 'https://vo"),
        ({"issuer": ISSUER}, jwks("a"), "no description"),
        ({"jwks_uri": "https://k/1"}, jwks("a"), "no description"),
        ({"issuer": ISSUER, "jwks_uri": "https://k/2"}, jwks("a"), "is not there"),
        ({"issuer": ISSUER, "jwks_uri": "https://k/1"}, b"<html>", "no JWK set"),
        ({"issuer": ISSUER, "jwks_uri": "https://k/1"}, b'{"keys": []}', "publishes no key"),
    ],
)
async def test_descriptions_that_lead_to_no_keys(about: dict[str, str], keys: bytes, says: str) -> None:
    """Each with a sentence; most of all one that describes another issuer, whose keys it would replace."""
    documents = Documents({metadata_urls(ISSUER)[0]: json.dumps(about).encode(), "https://k/1": keys})
    with pytest.raises(FetchError, match=says):
        await published_keys(ISSUER, documents)
