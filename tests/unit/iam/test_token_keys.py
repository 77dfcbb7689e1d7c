"""The keys of iam on disk: what they sign they accept, and nothing that is no access token."""

import stat
from pathlib import Path
from typing import Final

import msgspec
import pytest

from kettle.auth.tokens.issuing.derived import Grant
from kettle.auth.tokens.issuing.signing_keys import KeyTimes
from kettle.auth.tokens.verified import Profile
from kettle.runtime import SettingsError
from kettle_services.iam.domain.refusals import Code, Denied
from kettle_services.iam.token_keys import KeyFiles

NOW: Final = 1_800_000_000.0
URL: Final = "https://pool.example.org"
TIMES: Final = KeyTimes(life=100, lead=10, overlap=10)
GRANT: Final = Grant(
    issuer=URL, subject="ada", audience=("https://storage",), scopes=("condor:/READ",), lifetime=60
)


@pytest.mark.parametrize("profile", ["at+jwt", "wlcg", "scitokens"])
def test_a_token_of_ours_is_accepted_whomever_it_is_for(tmp_path: Path, profile: Profile) -> None:
    """In each form that we give, also by the next process, which has the same keys and the same pin."""
    keys = KeyFiles(tmp_path, TIMES, now=NOW)
    token = keys.issue(msgspec.structs.replace(GRANT, profile=profile), "id-1", now=NOW)
    again = KeyFiles(tmp_path, TIMES, now=NOW + 1)
    assert keys.pin == again.pin
    found = again.verified(token, URL, now=NOW + 1)
    assert ("ada", "id-1", ("https://storage",), profile) == (
        found.subject,
        found.id,
        found.audience,
        found.profile,
    )
    for path in tmp_path.iterdir():
        assert 0o600 == stat.S_IMODE(path.stat().st_mode)


def test_a_statement_is_no_access_token(tmp_path: Path) -> None:
    """What a machine is told when it joins opens nothing, not even with the claims of a token."""
    keys = KeyFiles(tmp_path, TIMES, now=NOW)
    claims = {"iss": URL, "sub": "root", "aud": URL, "iat": int(NOW), "exp": int(NOW) + 60, "jti": "1"}
    for statement in (keys.statement(claims), keys.statement({"pool": "p"})):
        with pytest.raises(Denied) as refused:
            keys.verified(statement, URL, now=NOW)
        assert refused.value.code in {Code.TOKEN_KEY_UNKNOWN, Code.TOKEN_PROFILE}


def test_a_key_is_published_before_it_signs(tmp_path: Path) -> None:
    """And after; the pin stays."""
    keys = KeyFiles(tmp_path, TIMES, now=NOW)
    pin, first = keys.pin, keys.issue(GRANT, "1", now=NOW)
    assert not keys.rotate(now=NOW + 99)
    assert keys.rotate(now=NOW + 100)
    assert 3 == len(msgspec.json.decode(keys.published())["keys"])
    assert first.partition(".")[0] == keys.issue(GRANT, "2", now=NOW + 105).partition(".")[0]
    assert first.partition(".")[0] != keys.issue(GRANT, "3", now=NOW + 111).partition(".")[0]
    assert pin == keys.pin


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    """No new keys are made because of a mistake."""
    KeyFiles(tmp_path, TIMES, now=NOW)
    (tmp_path / "join-key.json").write_text("{")
    with pytest.raises(SettingsError, match=r"join-key\.json is no file of signing keys: restore it"):
        KeyFiles(tmp_path, TIMES, now=NOW)


def test_a_scope_that_no_token_can_have_is_refused(tmp_path: Path) -> None:
    """Before anything is signed."""
    keys = KeyFiles(tmp_path, TIMES, now=NOW)
    with pytest.raises(Denied) as refused:
        keys.issue(msgspec.structs.replace(GRANT, scopes=("storage.read",)), "1", now=NOW)
    assert (Code.TOKEN_SCOPE, 400) == (refused.value.code, refused.value.status)
