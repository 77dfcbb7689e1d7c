"""Tokens that a pool signs with its key."""

import hashlib
import hmac
import json
import stat
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Final

import pytest

from kettle.auth.idtokens import token_files
from kettle.auth.idtokens.checking import IdToken, verify
from kettle.auth.idtokens.idtoken import IdTokenClaims, create
from kettle.auth.idtokens.places import token_places
from kettle.auth.idtokens.pool_key import KeyFileError, read_key, scrambled, signing_secret
from kettle.auth.tokens.verified import TokenError

NOW: Final = 1_795_625_510
DOMAIN: Final = "pool.example.org"
SECRET: Final = signing_secret("POOL", b"secret")
SECRETS: Final = {"POOL": SECRET, "other": signing_secret("other", b"secret")}


def claims(lifetime: int | None = None, levels: tuple[str, ...] = ()) -> IdTokenClaims:
    return IdTokenClaims(
        trust_domain=DOMAIN, identity="ada@x", issued=NOW, id="0" * 32, lifetime=lifetime, levels=levels
    )


def signed(said: object, secret: bytes = SECRET, **header: object) -> str:
    """A token whatever is in it."""
    parts = ({"alg": "HS256", "kid": "POOL", **header}, said)
    data = ".".join(urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts)
    mark = urlsafe_b64encode(hmac.digest(secret, data.encode(), hashlib.sha256)).rstrip(b"=").decode()
    return f"{data}.{mark}"


GOOD: Final[dict[str, object]] = {"iss": DOMAIN, "sub": "ada@x", "iat": NOW, "jti": "1"}


def checked(token: str, now: float = NOW) -> IdToken:
    return verify(token, DOMAIN, SECRETS, now)


def test_a_token_is_as_htcondor_makes_it() -> None:
    """Made by HTCondor 25.14 of the key whose file has these bytes, at that time."""
    key = scrambled(bytes(range(1, 60)) + b"\0\xff")
    assert key == scrambled(scrambled(key))
    made = create(
        IdTokenClaims(
            trust_domain=DOMAIN,
            identity="ada@pool.example.org",
            issued=NOW,
            id="b76e209fe3004ae5189f5d94b5f65910",
            lifetime=600,
            levels=["READ", "ADVERTISE_STARTD"],
        ),
        "other",
        signing_secret("other", bytes(range(1, 60)) + b"\0\xff"),
    )
    assert made == (
        "eyJhbGciOiJIUzI1NiIsImtpZCI6Im90aGVyIn0.eyJleHAiOjE3OTU2MjYxMTAsImlhdCI6MTc5NTYyNTUxMCwiaXNzIjoicG9vbC5leGFtcGxl"
        "Lm9yZyIsImp0aSI6ImI3NmUyMDlmZTMwMDRhZTUxODlmNWQ5NGI1ZjY1OTEwIiwic2NvcGUiOiJjb25kb3I6XC9SRUFEIGNvbmRvcjpcL0FEVkVSVElT"
        "RV9TVEFSVEQiLCJzdWIiOiJhZGFAcG9vbC5leGFtcGxlLm9yZyJ9.VP0geRn4vcN7S5hKbOByp6if08_UC6VygwC4s1HR28Y"
    )


def test_the_key_of_the_pool_is_doubled() -> None:
    """As HTCondor does for tokens from before it had other keys, and for no other key."""
    assert signing_secret("POOL", b"ab") == signing_secret("other", b"abab")
    assert signing_secret("POOL", b"ab") != signing_secret("other", b"ab")


def test_a_token_says_whose_it_is() -> None:
    """With its limits and its end, if it has any."""
    found = checked(create(claims(), "POOL", SECRET))
    assert ("ada@x", "POOL", None, None) == (found.identity, found.key, found.levels, found.expires)
    limited = checked(create(claims(60, ("READ", "WRITE")), "other", SECRETS["other"]))
    assert ("other", frozenset({"READ", "WRITE"}), NOW + 60) == (limited.key, limited.levels, limited.expires)


@pytest.mark.parametrize(
    ("token", "code"),
    [
        (signed(GOOD, alg="none"), "token.alg"),
        (signed(GOOD, alg="RS256"), "token.alg"),
        (signed(GOOD, kid="stranger"), "token.key_unknown"),
        (signed(GOOD, kid=None), "token.key_unknown"),
        (signed(GOOD, kid=["POOL"]), "token.key_unknown"),
        (signed(GOOD, crit=["x"]), "token.critical"),
        (signed(GOOD, secret=b"x" * 32), "token.signature"),
        (signed(GOOD, kid="other"), "token.signature"),
        (signed({**GOOD, "iss": "elsewhere"}), "token.issuer_unknown"),
        (signed({**GOOD, "iss": None}), "token.issuer_unknown"),
        (signed({**GOOD, "exp": NOW - 61}), "token.expired"),
        (signed({**GOOD, "nbf": NOW + 3600}), "token.not_yet_valid"),
        (signed({**GOOD, "iat": NOW + 3600}), "token.not_yet_valid"),
        (signed({**GOOD, "exp": "never"}), "token.malformed"),
        (signed({**GOOD, "sub": ""}), "token.malformed"),
        (signed({**GOOD, "sub": "a\nb"}), "token.malformed"),
        (signed({**GOOD, "sub": 1}), "token.malformed"),
        (signed({**GOOD, "scope": ["condor:/READ"]}), "token.malformed"),
        (signed({name: value for name, value in GOOD.items() if name != "iat"}), "token.malformed"),
        (signed({name: value for name, value in GOOD.items() if name != "sub"}), "token.malformed"),
        (signed([1]), "token.malformed"),
        ("x.y", "token.malformed"),
    ],
)
def test_other_tokens_are_refused(token: str, code: str) -> None:
    """Each with its code, and without the token in the sentence."""
    with pytest.raises(TokenError) as caught:
        checked(token)
    assert code == caught.value.code
    assert token not in str(caught.value)
    assert token.rpartition(".")[2] not in str(caught.value) or token == "x.y"


def test_a_scope_that_means_nothing_here_limits_to_nothing() -> None:
    """It does not become a token without limits."""
    assert frozenset() == checked(signed({**GOOD, "scope": "storage.read:/ condor:/NEW"})).levels
    assert frozenset() == checked(signed({**GOOD, "scope": ""})).levels
    assert frozenset({"READ"}) == checked(signed({**GOOD, "scope": "x condor:/READ"})).levels


@pytest.mark.parametrize("domain", ["", "a b", "a,b", "a\tb"])
def test_a_trust_domain_is_one_word(domain: str) -> None:
    """HTCondor would read it as several."""
    with pytest.raises(ValueError, match="spaces or commas"):
        create(IdTokenClaims(trust_domain=domain, identity="a@b", issued=1, id="1"), "POOL", SECRET)


def test_only_a_file_that_nobody_else_may_read_has_a_key(tmp_path: Path) -> None:
    """The file is named in each refusal."""
    path = tmp_path / "POOL"
    path.write_bytes(scrambled(b"secret"))
    path.chmod(0o600)
    assert b"secret" == read_key(path)
    with pytest.raises(KeyFileError, match="POOL securely"):
        read_key(path, owners=[path.stat().st_uid + 1])
    path.chmod(0o640)
    with pytest.raises(KeyFileError, match="nobody else may read"):
        read_key(path)
    with pytest.raises(KeyFileError, match="No such file"):
        read_key(tmp_path / "other")
    with pytest.raises(KeyFileError, match="securely"):
        read_key(tmp_path)
    path.write_bytes(b"")
    path.chmod(0o600)
    with pytest.raises(KeyFileError, match="no key in it"):
        read_key(path)


def test_files_of_tokens_are_read_in_order(tmp_path: Path) -> None:
    """Several tokens a file, and none from what editors leave behind."""
    (tmp_path / "b").write_text("# mine\n\n one \ntwo\n")
    (tmp_path / "a").write_text("three")
    (tmp_path / "d").mkdir()
    for name in (".hidden", "#x#", "b~", "x.sh", "x.py", "x.rpmsave"):
        (tmp_path / name).write_text("not\n")
    found = token_files.files(tmp_path)
    assert ["a", "b"] == [path.name for path in found]
    assert ["three", "one", "two"] == [line.text for path in found for line in token_files.lines(path)]


def test_a_token_is_written_for_its_owner_only(tmp_path: Path) -> None:
    """In the place of an older one; a link or a pipe is written to and not replaced."""
    path = tmp_path / "tokens.d" / "mine"
    path.parent.mkdir()
    path.write_text("old\n")
    path.chmod(0o644)
    token_files.write(path, "new")
    assert "new\n" == path.read_text()
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    link = tmp_path / "link"
    link.symlink_to(path)
    token_files.write(link, "newer")
    assert link.is_symlink()
    assert "newer\n" == path.read_text()
    token_files.write(tmp_path / "made" / "x", "x")
    assert 0o700 == stat.S_IMODE((tmp_path / "made").stat().st_mode)
    assert ["mine"] == [each.name for each in path.parent.iterdir()]


def test_knobs_say_where_all_is() -> None:
    """With HTCondor's defaults, and no key outside its directory."""
    found = token_places({"UID_DOMAIN": "x.org", "SEC_TOKEN_DIRECTORY": "/t"}.get)
    assert ("x.org", "/etc/condor/passwords.d/POOL", "/t") == (
        found.trust_domain,
        str(found.pool_key),
        str(found.tokens),
    )
    assert found.pool_key == found.key("") == found.key("POOL")
    assert Path("/etc/condor/passwords.d/k") == found.key("k")
    for name in ("../k", "a/b", ".."):
        with pytest.raises(ValueError, match="none"):
            found.key(name)
    other = {"SEC_PASSWORD_DIRECTORY": "/p", "TRUST_DOMAIN": "t", "SEC_TOKEN_POOL_SIGNING_KEY_FILE": "/k/key"}
    moved = token_places(other.get)
    assert ("t", Path("/k/key"), Path("/p/POOL2")) == (moved.trust_domain, moved.pool_key, moved.key("POOL2"))
