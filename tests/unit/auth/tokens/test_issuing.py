"""Our own keys and tokens."""

import json
import stat
from pathlib import Path
from typing import Final

import msgspec
import pytest

from kettle.auth.tokens.checking.issuers import Issuer
from kettle.auth.tokens.checking.parsing import parse
from kettle.auth.tokens.checking.public_keys import key_set
from kettle.auth.tokens.checking.verification import verify
from kettle.auth.tokens.issuing.derived import Grant, NotNarrowerError, issue, narrowed
from kettle.auth.tokens.issuing.key_store import KeyStore, KeyStoreError, new_key
from kettle.auth.tokens.issuing.signing_keys import KeyRing, KeyTimes
from kettle.auth.tokens.verified import Profile, TokenError, VerifiedToken

NOW: Final = 1_800_000_000
POOL: Final = Issuer(url="https://pool.example.org", audiences=("https://storage.example.org",))
TIMES: Final = KeyTimes(life=100, lead=10, overlap=30)
GRANT: Final = Grant(
    issuer=POOL.url,
    subject="ada",
    audience=("https://storage.example.org",),
    scopes=("storage.read:/data/ada",),
)
PARENT: Final = VerifiedToken(
    issuer="https://vo.example.org",
    subject="ada",
    audience=("https://pool.example.org",),
    profile="wlcg",
    scopes=("storage.modify:/data", "storage.stage:/data", "compute.create", "openid"),
    groups=(),
    expires=NOW + 3600,
    issued=NOW,
    id="p",
    claims={},
)


@pytest.mark.parametrize("profile", ["scitokens", "wlcg", "at+jwt", "plain"])
def test_what_we_sign_we_accept(profile: Profile) -> None:
    """In each profile, by the keys that we publish and by those that we have."""
    ring = KeyRing((new_key(NOW),))
    token = issue(msgspec.structs.replace(GRANT, profile=profile), ring.signing(NOW, TIMES), NOW, "id-1")
    for keys in (ring.key_set(), key_set(ring.jwks())):
        found = verify(parse(token), POOL, keys, NOW)
        assert (profile, "ada", "id-1", NOW + 1200) == (found.profile, found.subject, found.id, found.expires)
        assert GRANT.scopes == found.scopes


def test_more_claims_replace_none_of_ours() -> None:
    """Neither the subject nor the end of a token can be slipped in beside the others."""
    ring = KeyRing((new_key(NOW),))
    more = {"sub": "root", "exp": NOW * 2, "job": "1.0"}
    found = verify(
        parse(issue(msgspec.structs.replace(GRANT, claims=more), ring.keys[0], NOW, "1")),
        POOL,
        ring.key_set(),
        NOW,
    )
    assert ("ada", NOW + 1200, "1.0") == (found.subject, found.expires, found.claims["job"])


def test_no_token_with_a_bad_scope_is_signed() -> None:
    """It would be refused everywhere."""
    with pytest.raises(TokenError):
        issue(msgspec.structs.replace(GRANT, scopes=("storage.read",)), new_key(NOW), NOW, "1")


def test_keys_follow_each_other_without_a_gap() -> None:
    """
    At every moment the key that signs was published for a while, and its last token can be checked to its end.
    """
    ring = KeyRing()
    published: dict[int, set[str]] = {}
    signed: dict[int, str] = {}
    for now in range(NOW, NOW + 1000):
        fresh = new_key(now) if ring.needs_key(now, TIMES) else None
        ring = ring.rotated(fresh, now, TIMES)
        kid = ring.signing(now, TIMES).kid
        signed[now] = kid
        published[now] = {key.kid for key in ring.keys}
        assert len(ring.keys) <= 2
    assert 10 == len(set(signed.values()))
    for now, kid in signed.items():
        if kid != signed[NOW]:
            assert kid in published[now - TIMES.lead]
        assert kid in published[min(now + TIMES.overlap - 1, NOW + 999)]


def test_a_key_that_was_lost_is_worth_nothing() -> None:
    """Taken out of the ring, it signs nothing and checks nothing."""
    lost, other = new_key(NOW), new_key(NOW + 50)
    ring = KeyRing((lost, other)).without(lost.kid)
    token = issue(GRANT, lost, NOW + 60, "1")
    assert other == ring.signing(NOW + 60, TIMES)
    with pytest.raises(TokenError) as caught:
        verify(parse(token), POOL, ring.key_set(), NOW + 60)
    assert caught.value.code == "token.key_unknown"


def test_nothing_secret_is_published_or_shown() -> None:
    """Neither the document nor the text of a key for a log has its secret half."""
    key = new_key(NOW)
    secret = key.key.as_dict(private=True)["d"]
    assert isinstance(secret, str)
    ring = KeyRing((key,))
    assert secret not in ring.jwks().decode()
    assert [{"alg", "crv", "kid", "kty", "use", "x", "y"}] == [
        set(each) for each in json.loads(ring.jwks())["keys"]
    ]
    assert secret not in repr(ring)
    assert not ring.key_set().keys[0].key.is_private


def test_keys_are_kept_on_disk(tmp_path: Path) -> None:
    """They are made once, read by nobody else, and rotated when it is time; nothing is left beside them."""
    path = tmp_path / "secrets" / "keys.json"
    store = KeyStore(path, TIMES)
    first = store.ring(NOW)
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    assert 0o700 == stat.S_IMODE(path.parent.stat().st_mode)
    assert [key.kid for key in first.keys] == [key.kid for key in KeyStore(path, TIMES).ring(NOW + 99).keys]
    later = store.ring(NOW + 100)
    assert 2 == len(later.keys)
    assert first.keys[0].kid == later.signing(NOW + 100, TIMES).kid
    assert later.keys[1].kid == later.signing(NOW + 110, TIMES).kid
    assert [later.keys[1].kid] == [key.kid for key in store.ring(NOW + 140).keys]
    assert [path] == list(path.parent.iterdir())


def test_keys_that_others_may_read_are_not_used(tmp_path: Path) -> None:
    """The file is named, and what to do."""
    path = tmp_path / "keys.json"
    store = KeyStore(path)
    store.ring(NOW)
    path.chmod(0o640)
    with pytest.raises(KeyStoreError, match=r"keys\.json .* others may read it"):
        store.ring(NOW)


@pytest.mark.parametrize(
    "text", ["", "{}", '{"keys": [{"created": 1, "jwk": {"kty": "EC", "d": "secret"}}]}']
)
def test_a_broken_file_is_named_and_not_shown(tmp_path: Path, text: str) -> None:
    """No new keys are made because of a mistake, and no secret is in the text."""
    path = tmp_path / "keys.json"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(KeyStoreError, match="no file of signing keys") as caught:
        KeyStore(path).ring(NOW)
    assert "secret" not in str(caught.value)
    assert text == path.read_text()


def test_a_derived_token_is_narrower() -> None:
    """It may have some of the scopes, for an audience that is allowed, and ends no later."""
    elsewhere = {"https://storage.example.org"}
    assert 1200 == narrowed(PARENT, GRANT, NOW, audiences=elsewhere).lifetime
    assert 100 == narrowed(PARENT, GRANT, NOW + 3500, audiences=elsewhere).lifetime
    here = msgspec.structs.replace(GRANT, audience=PARENT.audience)
    assert PARENT.audience == narrowed(PARENT, here, NOW, audiences=()).audience


@pytest.mark.parametrize(
    ("grant", "now", "says"),
    [
        (msgspec.structs.replace(GRANT, subject="berta"), NOW, "cannot be made one of 'berta'"),
        (msgspec.structs.replace(GRANT, scopes=("compute.cancel",)), NOW, "does not have 'compute.cancel'"),
        (msgspec.structs.replace(GRANT, scopes=()), NOW, "needs a capability"),
        (msgspec.structs.replace(GRANT, scopes=("openid",)), NOW, "needs a capability"),
        (msgspec.structs.replace(GRANT, audience=("https://x",)), NOW, "no token for 'https://x'"),
        (msgspec.structs.replace(GRANT, audience=("ANY",)), NOW, "no token for 'ANY'"),
        (msgspec.structs.replace(GRANT, audience=()), NOW, "no token for everybody"),
        (GRANT, NOW + 3600, "has expired"),
        (msgspec.structs.replace(GRANT, lifetime=0), NOW, "no lifetime"),
    ],
)
def test_nothing_wider_is_derived(grant: Grant, now: int, says: str) -> None:
    """Neither more scopes, nor another person, audience or time; and no token without any limit."""
    with pytest.raises(NotNarrowerError, match=says):
        narrowed(PARENT, grant, now, audiences={"https://storage.example.org"})
