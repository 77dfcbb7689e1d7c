"""`kettle pki`: what is made, shown and refused."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from kettle_services.cli.__main__ import main


class Command:
    """`kettle pki` for one directory of a pool."""

    def __init__(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.home = home
        self._capsys = capsys

    def __call__(self, *words: str) -> tuple[int, str, str]:
        status = main(["pki", *words, "--home", str(self.home)])
        said = self._capsys.readouterr()
        return status, said.out, said.err

    def json(self, *words: str) -> Any:
        status, out, err = self(*words, "--json")
        assert (0, "") == (status, err)
        return json.loads(out)


@pytest.fixture
def pki(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(tmp_path / "home", capsys)


def test_an_authority_and_certificates_are_made_and_shown(pki: Command) -> None:
    """As a table and as JSON; the directory of the pool stays private."""
    status, out, err = pki("init", "--name", "Physics")
    assert 0 == status
    assert "ca.pem is valid until" in out
    assert "pin sha256:" in out
    assert "Next: kettle pki issue" in err
    assert 0o700 == stat.S_IMODE(pki.home.stat().st_mode)
    server = pki.json("issue", "bus.example.org", "192.0.2.7", "--days", "90")
    client = pki.json("issue", "--client", "monitoring")
    assert ["server", "client"] == [server["kind"], client["kind"]]
    assert ["bus.example.org", "192.0.2.7"] == server["names"]
    status, out, err = pki("show")
    assert (0, "") == (status, err)
    assert [line.split()[:2] for line in out.splitlines()[1:4]] == [
        ["ca", "authority"],
        ["bus.example.org", "server"],
        ["monitoring", "client"],
    ]
    assert "(89 days)" in out
    assert ["Physics"] * 3 == [each["issuer"] for each in pki.json("show")]
    [one] = pki.json("show", server["certificate"])
    assert server["serial"] == one["serial"]


def test_only_what_is_due_is_renewed_unless_it_is_named(pki: Command) -> None:
    """So it can run every day."""
    pki("init")
    pki("issue", "bus.example.org")
    status, out, err = pki("renew")
    assert (0, "") == (status, out)
    assert "None is due" in err
    [renewed] = pki.json("renew", "bus.example.org", "--days", "30")
    [shown] = pki.json("show", "bus.example.org")
    assert renewed == shown


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["show"], "make one with kettle pki init"),
        (["issue", "bus"], "make one with kettle pki init"),
        (["show", "/nowhere.pem"], "cannot be read"),
    ],
)
def test_what_cannot_be_is_one_sentence(pki: Command, words: list[str], says: str) -> None:
    status, out, err = pki(*words)
    assert (1, "") == (status, out)
    assert err.startswith("kettle pki: ")
    assert says in err
    assert 1 == len(err.splitlines())
