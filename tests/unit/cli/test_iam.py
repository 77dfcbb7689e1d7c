"""`kettle iam`: the files of a site are checked, and a credential is tried out without being shown."""

import base64
import io
import json
import re
from pathlib import Path

import pytest

from kettle_services.cli.__main__ import main

SETTINGS = """
[authorization]
domain = "pool"
map_files = ["map"]
rules = "rules.toml"

[authorization.allow]
READ = ["*"]
WRITE_SCHEDD = ["ada@pool"]
"""
RULES = r"""
[[rules]]
when = { issuer = "https://cms.example.org/", groups = "/cms/uscms", subject = '/^([a-z]+)-\d+$/' }
owner = '\1'
levels = ["NEGOTIATOR"]
"""
CLAIMS = {
    "iss": "https://cms.example.org/",
    "sub": "ada-7",
    "wlcg.ver": "1.0",
    "wlcg.groups": ["/cms/uscms"],
    "exp": 4e9,
}


def token(claims: object, algorithm: str = "ES256") -> str:
    def part(data: bytes) -> str:
        return base64.urlsafe_b64encode(data).decode().rstrip("=")

    header = {"alg": algorithm, "kid": "k"}
    return ".".join(
        [part(json.dumps(header).encode()), part(json.dumps(claims).encode()), part(b"a signature")]
    )


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("KETTLE_CONFIG", raising=False)
    monkeypatch.setenv("KETTLE_HOME", str(tmp_path))
    (tmp_path / "kettle.toml").write_text(SETTINGS)
    (tmp_path / "rules.toml").write_text(RULES)
    (tmp_path / "map").write_text('SSL "/CN=Ada" ada\n')
    return tmp_path


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    main(["iam", "test", *words, "--json"])
    return dict(json.loads(capsys.readouterr().out))


def test_claims_and_tokens_are_the_same_to_it(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A file with claims, a file with a token, a token on standard input and a typed one are the same principal.
    """
    (home / "claims.json").write_text(json.dumps(CLAIMS))
    (home / "token").write_text(token(CLAIMS) + "\n")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(token(CLAIMS).encode())))
    said = [
        answer(capsys, each) for each in (str(home / "claims.json"), str(home / "token"), "-", token(CLAIMS))
    ]
    assert ["ada@pool"] * 4 == [each["name"] for each in said]
    assert [
        [],
        *[["The signature was not checked: this is who the claims would be if it is right."]] * 3,
    ] == [each["remarks"] for each in said]


def test_a_token_is_never_printed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither a good one nor what only looks like one is in any output."""
    good = token(CLAIMS)
    for words in (
        [good],
        [good, "--json"],
        [good + "x"],
        [good[:-20]],
        [good.replace(".", "..", 1)],
        [good.replace("ey", "e", 1)],
    ):
        main(["iam", "test", *words])
        out, err = capsys.readouterr()
        assert not [part for part in good.split(".") if part in out + err]


def test_it_says_name_levels_and_rules(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On a terminal: who, because of what, and each level with its rule or what is missing."""
    assert 0 == main(["iam", "test", token({**CLAIMS, "exp": 1}), "--service", "schedd"])
    out, err = capsys.readouterr()
    assert "name              ada@pool\n" in out
    assert (
        rf"because of        {home}/rules.toml:2: when issuer = https://cms.example.org/, groups = /cms/uscms"
        in out
    )
    assert f"WRITE             yes     {home}/kettle.toml:9: allow WRITE_SCHEDD = ada@pool\n" in out
    assert (
        "CONFIG            no      [authorization] has no allow.CONFIG, and ada@pool has no level that implies it\n"
        in out
    )
    assert "The token has expired: services refuse it." in err


def test_without_a_name_the_status_is_one(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody is somebody else than a mistake in what was typed."""
    assert [1, 0, 0, 1] == [
        main(["iam", "test", *words])
        for words in (
            [token({**CLAIMS, "wlcg.groups": []})],
            ["--login", "linus"],
            ["--dn", "/CN=Ada"],
            ["--dn", "/CN=Adam"],
        )
    ]
    capsys.readouterr()
    assert [2, 2, 2, 2] == [
        main(["iam", "test", *words]) for words in ([], ["a", "--login", "b"], ["no-such-file"], ["eyJ.b.c"])
    ]
    assert [
        "kettle iam: give one credential: a token, a file with its claims, --login or --dn",
        "kettle iam: give one credential: a token, a file with its claims, --login or --dn",
        "kettle iam: no-such-file is no token, and no file that can be read: No such file or directory",
        "kettle iam: a part of the token is not in base64",
    ] == capsys.readouterr().err.splitlines()


def test_a_token_of_the_pool_has_its_own_name(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    A token that is signed with a shared key is one of HTCondor's, whose subject is the name; its scopes limit it.
    """
    said = answer(capsys, token({"iss": "pool", "sub": "condor@pool", "scope": "condor:/READ"}, "HS256"))
    assert ("IDTOKENS", "condor@pool", ["READ"]) == (said["method"], said["name"], said["limits"])


def test_the_files_are_checked_here_and_with_the_configuration(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mistake is status 1 in both, with its place; a warning is not."""
    assert [0, 0] == [main(["iam", "check"]), main(["config", "check"])]
    assert (
        capsys.readouterr().out
        == "The files are right: 1 lines of map files, 1 rules, 0 bans.\nThe configuration is right.\n"
    )
    (home / "map").write_text("SSL /CN=Ada/ ada\n")
    assert [0, 0] == [main(["iam", "check"]), main(["config", "check"])]
    assert 4 == capsys.readouterr().err.count(f"warning: {home}/map:1: /CN=Ada/ ")
    (home / "map").write_text("SSL /(/ ada\n")
    assert [1, 1] == [main(["iam", "check"]), main(["config", "check"])]
    assert 2 == capsys.readouterr().err.count(
        f"{home}/map:1: /(/ is no expression that can be used: missing ): (."
    )
    (home / "new").write_text("[[rules]]\nwen = 1\n")
    assert 1 == main(["iam", "check", "--map", str(home / "new"), "--rules", str(home / "new"), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert [False, True, False] == [each["warning"] for each in found]
    assert f"{home}/new:1" == found[-1]["where"]


DOCS = Path(__file__).parents[3] / "docs"
PAGES = ("how-to/say-who-may-do-what.md", "reference/authorization.md")


def test_the_examples_of_the_pages_are_right(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the pages show can be used as it is, and none of it is warned of."""
    shown = 0
    for page in PAGES:
        for language, block in re.findall(r"```(toml|text)\n(.*?)```", (DOCS / page).read_text(), re.DOTALL):
            (home / "map.d").mkdir(exist_ok=True)
            of_rules = "[[rules]]" in block or "[[bans]]" in block
            words = ["--map" if language == "text" else "--rules", str(home / "example")]
            if language == "toml" and not of_rules:
                (home / "kettle.toml").write_text(
                    re.sub("^(map_files|rules) = .*$", "", block, flags=re.MULTILINE)
                )
                words = []
            (home / "example").write_text(block)
            assert 0 == main(["iam", "check", *words, "--json"])
            assert [] == json.loads(capsys.readouterr().out), block
            shown += 1
    assert shown == 7
