"""With which credential a person's program comes to a pool."""

import base64
import hashlib
import json
import os
import time
from pathlib import Path

import msgspec
import pytest

from kettle.client.connections.credentials import token_at
from kettle.client.connections.locating import with_credential
from kettle.client.connections.pool_file import PoolFile
from kettle.client.device_login import TokenFiles, Tokens
from kettle.client.errors import ClientError, PoolNotFoundError

ISSUER = "https://login.example"
POOL = PoolFile(
    nats_url="nats://127.0.0.1:1",
    credentials="/pool/user.creds",
    user="unix",
    iam_url="http://127.0.0.1:1",
    sentinel="/pool/sentinel.creds",
    issuers=(ISSUER,),
    trust_domain="pool.example",
)


def token(issuer: str, subject: str) -> str:
    def part(value: dict[str, str]) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part({'alg': 'ES256'})}.{part({'iss': issuer, 'sub': subject})}.c2ln"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "logins").mkdir()
    return tmp_path


def known(home: Path, owner: str, issuer: str = ISSUER) -> str:
    """A token of whose holder the pool has said who it is."""
    made = token(issuer, owner)
    name = f"owner-{hashlib.sha256(made.encode()).hexdigest()[:32]}"
    (home / "logins" / name).write_text(json.dumps({"owner": owner, "expires": time.time() + 60}))
    return made


def signed_in(home: Path, owner: str) -> None:
    now = time.time()
    TokenFiles(home).save(
        Tokens(
            issuer=ISSUER, client="kettle", access_token=known(home, owner), obtained=now, expires=now + 600
        )
    )


def signed_in_long_ago(home: Path, issuer: str) -> None:
    """Nobody answers for this issuer any more, and the token has ended."""
    TokenFiles(home).save(
        Tokens(issuer=issuer, client="kettle", access_token=token(issuer, "ada"), obtained=0.0, expires=1.0)
    )


def idtoken(home: Path, owner: str) -> None:
    (home / "tokens.d").mkdir()
    (home / "tokens.d" / "pool").write_text(f"# of the pool\n{known(home, owner, 'pool.example')}\n")


def environ(home: Path, **more: str) -> dict[str, str]:
    return {"KETTLE_HOME": str(home), "_condor_SEC_TOKEN_DIRECTORY": str(home / "tokens.d"), **more}


def as_whom(home: Path, pool: PoolFile = POOL, **more: str) -> PoolFile:
    return with_credential(pool, environ(home, **more))


def test_the_first_place_that_counts_is_taken(home: Path) -> None:
    """What is named, then this shell's token, the sign-in, IDTOKENS, and the account at last."""
    assert ("unix", "") == ((found := as_whom(home)).user, found.token)
    idtoken(home, "by-idtoken")
    assert "by-idtoken" == as_whom(home).user
    signed_in(home, "by-login")
    assert "by-login" == as_whom(home).user
    (file := home / "file").write_text(known(home, "by-file"))
    assert "by-file" == as_whom(home, BEARER_TOKEN_FILE=str(file)).user
    found = as_whom(home, BEARER_TOKEN_FILE=str(file), BEARER_TOKEN=known(home, "by-text"))
    assert ("by-text", "/pool/sentinel.creds") == (found.user, found.credentials)
    found = as_whom(home, BEARER_TOKEN_FILE=str(file), KETTLE_NATS_CREDENTIALS="/mine.creds")
    assert ("unix", "/mine.creds", "") == (found.user, found.credentials, found.token)


def test_the_file_of_the_runtime_directory_is_found(home: Path) -> None:
    """By the name that WLCG token discovery gives it."""
    path = home / f"bt_u{os.geteuid()}"
    path.write_text(known(home, "by-runtime"))
    path.chmod(0o600)
    assert "by-runtime" == as_whom(home, XDG_RUNTIME_DIR=str(home)).user


def test_a_token_for_somebody_else_is_passed_over(home: Path) -> None:
    """A shell often has one for storage; without anything else the places that were looked at are named."""
    elsewhere = token("https://storage.example", "ada")
    assert "unix" == as_whom(home, BEARER_TOKEN=elsewhere).user
    nobody = msgspec.structs.replace(POOL, credentials="")
    with pytest.raises(PoolNotFoundError, match=r"BEARER_TOKEN has one of https://storage\.example"):
        as_whom(home, nobody, BEARER_TOKEN=elsewhere)


def test_a_dead_login_matters_only_to_a_pool_that_takes_it(home: Path) -> None:
    """
    One of another issuer is passed over without asking whether it can be renewed; a slash at the end makes no difference.
    """
    signed_in_long_ago(home, "https://elsewhere.example")
    assert "unix" == as_whom(home).user
    with pytest.raises(ClientError, match="elsewhere"):
        as_whom(home, msgspec.structs.replace(POOL, issuers=("https://elsewhere.example/",)))


def test_a_file_that_ends_while_it_is_read_is_passed_over(home: Path) -> None:
    """Somebody removes tokens while others look for them, as a link to nothing shows."""
    (home / "tokens.d").mkdir()
    (home / "tokens.d" / "gone").symlink_to(home / "nothing")
    assert "unix" == as_whom(home).user


def test_a_pool_that_takes_no_tokens_is_shown_none(home: Path) -> None:
    """Whatever tokens there are, the account of the machine is what it knows."""
    signed_in(home, "by-login")
    closed = msgspec.structs.replace(POOL, sentinel="")
    assert "unix" == as_whom(home, closed, BEARER_TOKEN=known(home, "by-text")).user


@pytest.mark.parametrize("content", ["two words", ""])
def test_a_place_that_is_named_and_has_no_token_is_no_reason_to_look_further(
    home: Path, content: str
) -> None:
    """A broken token is not replaced by an older one somewhere else."""
    (home / "file").write_text(content)
    signed_in(home, "by-login")
    with pytest.raises(ClientError, match="token"):
        as_whom(home, BEARER_TOKEN_FILE=str(home / "file"))


def test_the_token_is_read_again_for_each_connection(home: Path) -> None:
    """Somebody renews the file while the connection lasts."""
    (file := home / "file").write_text(known(home, "ada"))
    pool = as_whom(home, BEARER_TOKEN_FILE=str(file))
    file.write_text("another")
    assert "another" == token_at(pool.token, environ(home, BEARER_TOKEN_FILE=str(file)))
