"""condor_token_create and condor_token_list."""

import json
import stat
from base64 import urlsafe_b64decode
from pathlib import Path

import pytest

from kettle.auth.idtokens.checking import verify
from kettle.auth.idtokens.pool_key import scrambled, signing_secret
from kettle.auth.mapping.principals import Address
from kettle.auth.tokens.checking.parsing import parse
from kettle_services.cli.access.credentials import shown
from kettle_services.condor.start import main


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with a key of its pool and another, and a directory for tokens."""
    keys = tmp_path / "passwords.d"
    keys.mkdir()
    for name in ("POOL", "other"):
        (keys / name).write_bytes(scrambled(f"key {name}".encode()))
        (keys / name).chmod(0o600)
    config = tmp_path / "condor_config"
    config.write_text(f"TRUST_DOMAIN = pool.example.org\nSEC_PASSWORD_DIRECTORY = {keys}\n")
    monkeypatch.setenv("CONDOR_CONFIG", str(config))
    monkeypatch.setenv("KETTLE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("_condor_SEC_TOKEN_DIRECTORY", str(tmp_path / "tokens.d"))
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    """What it prints; after a failure what it complains about, and nothing else."""
    assert status == main(words[0], list(words[1:]))
    found = capsys.readouterr()
    assert not (found.err if status == 0 else found.out)
    return found.out if status == 0 else found.err


def test_a_token_is_made_and_is_good(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of the pool's key or another, with or without limits."""
    secrets = {name: signing_secret(name, f"key {name}".encode()) for name in ("POOL", "other")}
    token = said(capsys, "condor_token_create", "-identity", "ada@x").strip()
    now = json.loads(urlsafe_b64decode(token.split(".")[1] + "=="))["iat"]
    found = verify(token, "pool.example.org", secrets, now)
    assert ("ada@x", "POOL", None, None) == (found.identity, found.key, found.levels, found.expires)
    words = ("-id", "b@y", "-key", "other", "-authz", "READ", "-a", "advertise_startd", "-life", "60")
    limited = verify(said(capsys, "condor_token_create", *words).strip(), "pool.example.org", secrets, now)
    assert ("b@y", "other", frozenset({"READ", "ADVERTISE_STARTD"})) == (
        limited.identity,
        limited.key,
        limited.levels,
    )
    assert limited.issued + 60 == limited.expires
    endless = said(capsys, "condor_token_create", "-identity", "ada@x", "-lifetime", "-1").strip()
    assert verify(endless, "pool.example.org", secrets, now).expires is None


def test_a_token_is_written_and_listed_without_its_signature(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is listed is not worth anything to who reads it."""
    assert "" == said(capsys, "condor_token_list")  # nobody has made a directory yet
    said(capsys, "condor_token_create", "-identity", "ada@x", "-token", "mine")
    said(
        capsys,
        "condor_token_create",
        "-identity",
        "ada@x",
        "-authz",
        "READ",
        "-file",
        str(place / "elsewhere"),
    )
    path = place / "tokens.d" / "mine"
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    assert 0o700 == stat.S_IMODE(path.parent.stat().st_mode)
    line = said(capsys, "condor_token_list")
    assert line.startswith('Header: {"alg":"HS256","kid":"POOL"} Payload: {"iat":')
    assert line.endswith(
        f'"iss":"pool.example.org","jti":"{line.split("jti")[1][3:35]}","sub":"ada@x"}} File: {path}\n'
    )
    signature = path.read_text().strip().rpartition(".")[2]
    assert signature not in line
    assert r'"scope":"condor:\/READ"' in said(capsys, "condor_token_list", "-file", str(place / "elsewhere"))
    assert line == said(capsys, "condor_token_list", "-dir", str(place / "tokens.d"))


def test_lines_that_are_no_tokens_are_counted(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    The others are listed, the status is 1, and nothing of such a line is shown: it may be a token with a mistake.
    """
    said(capsys, "condor_token_create", "-identity", "ada@x", "-token", "mine")
    path = place / "tokens.d" / "mine"
    token = path.read_text()
    path.write_text(f"# two\n{token}secret.{token}\n{token}")
    assert 1 == main("condor_token_list", [])
    found = capsys.readouterr()
    assert 2 == found.out.count("Header: ")
    assert f"Failed to decode 1 JWT lines in keyfile '{path}'\n" == found.err


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        ((), 1, "-identity is needed"),
        (("-identity", "ada"), 1, "USER@DOMAIN"),
        (("-identity", "ada@x", "-authz", "REED"), 1, "do you mean READ?"),
        (("-identity", "ada@x", "-lifetime", "1h"), 1, "Invalid argument for -lifetime: 1h."),
        (
            ("-identity", "ada@x", "-key", "none"),
            2,
            "Failed to generate a token.\nTOKEN:1:Failed to read file ",
        ),
        (("-identity", "ada@x", "-key", "../POOL"), 2, "Failed to generate a token.\n"),
        (("-identity", "ada@x", "-token", "../x"), 1, "Token name isn't a plain filename\n"),
        (("-identity", "ada@x", "-file", "/proc/none/x"), 1, "Cannot write token to /proc/none/x: "),
        (("-identity", "ada@x", "more"), 1, "Invalid command line argument: more"),
        (("-identity",), 1, "requires another parameter"),
    ],
)
def test_what_is_not_made(
    place: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], status: int, says: str
) -> None:
    """With HTCondor's status and words; no file is left."""
    assert says in said(capsys, "condor_token_create", *words, status=status)
    assert not (place / "tokens.d").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("-dir", "/nowhere"), "Cannot open /nowhere: No such file or directory (errno=2)"),
        (("-file", "/nowhere"), "Failed to open token file '/nowhere'"),
        (("-capability",), "not carried out"),
        (("more",), "Invalid command line argument"),
    ],
)
def test_what_is_not_listed(
    place: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], says: str
) -> None:
    """A place that was named and is not there is a mistake."""
    assert says in said(capsys, "condor_token_list", *words, status=1)


def test_a_token_to_try_out_is_one_of_its_issuer(capsys: pytest.CaptureFixture[str]) -> None:
    """In the form of SciTokens, each time with another key; options as in HTCondor, also shortened."""
    words = (
        "--issuer",
        "https://demo.example.org",
        "--scope",
        "condor:/WRITE",
        "--sub",
        "ada",
        "--aud",
        "ANY",
    )
    first, second = (said(capsys, "condor_test_token", *words).strip() for _ in range(2))
    assert parse(first).header["kid"] != parse(second).header["kid"]
    token = parse(first)
    assert ("ES256", "scitoken:2.0", "ada", "ANY", "condor:/WRITE") == (
        token.header["alg"],
        *(token.claims[name] for name in ("ver", "sub", "aud", "scope")),
    )
    short = parse(
        said(capsys, "condor_test_token", "-i", "https://x", "-S", "a b", "-s", "eve", "-l", "60").strip()
    )
    assert "aud" not in short.claims
    exp, iat = short.claims["exp"], short.claims["iat"]
    assert isinstance(exp, int)
    assert isinstance(iat, int)
    assert ("eve", 60) == (short.claims["sub"], exp - iat)
    principal = shown(first).principal(Address())
    assert ("https://demo.example.org", frozenset({"READ", "WRITE"})) == (principal.issuer, principal.limits)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--issuer", "https://x"), "the following arguments are required: --issuer and --scope"),
        (("-i", "https://x", "-S", "a", "-l", "soon"), "argument --lifetime: invalid int value: 'soon'"),
        (("-i", "https://x", "-S", "a", "-c", "/tmp"), "--cache is not carried out"),
        (("-i", "https://x", "-S", "a", "more"), "unrecognized arguments: more"),
        (("--isuer", "https://x"), "option --isuer not recognized"),
    ],
)
def test_a_mistake_in_what_was_typed_is_named(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], complaint: str
) -> None:
    assert complaint in said(capsys, "condor_test_token", *words, status=1)
