"""`kettle flock`: passes are made and taken in."""

import json
from pathlib import Path

import pytest

from kettle.client.connections.pool_file import PoolFile
from kettle.flocking.passes import Passes
from kettle_services.cli.__main__ import main

SEED = "SUAMLK2ZNL35WSMW37E7UD4VZ7ELPKW7DHC3BWBSD2GCZ7IUQQXZIORRBU"


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """The directory of a pool that has admitted one schedd."""
    home = tmp_path / "there"
    (home / "credentials").mkdir(parents=True)
    (home / "credentials" / "visitor-ap@physics.nk").write_text(f"{SEED}\n")
    PoolFile(pool="chemistry", nats_url="nats://127.0.0.1:1").save(home)
    return home


def test_a_pass_is_made_there_and_taken_in_here(
    there: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file is for its owner alone, and is not written over."""
    file, here = tmp_path / "physics.pass", tmp_path / "here"
    words = [
        "flock",
        "pass",
        "ap@physics",
        "--home",
        str(there),
        "--nats-url",
        "nats://bus:4222",
        "-o",
        str(file),
    ]
    assert 0 == main(words)
    assert 0o600 == file.stat().st_mode & 0o777
    assert 2 == main(words)
    assert "File exists" in capsys.readouterr().err
    assert 0 == main(["flock", "use", str(file), "--as", "chem", "--home", str(here), "--json"])
    assert {"pool": "chem", "visitor": "ap@physics"} == json.loads(capsys.readouterr().out)
    taken = Passes(here).load("chem")
    assert ("chemistry", "nats://bus:4222", SEED) == (taken.pool, taken.nats_url, taken.seed)


def test_a_pass_has_the_authority_of_an_encrypted_pool(there: Path, tmp_path: Path) -> None:
    """The visitor trusts that pool's bus by it, and has it in a file of its own."""
    (there / "ca.pem").write_text("CERTIFICATE\n")
    PoolFile(pool="chemistry", nats_url="tls://bus:4222", ca=str(there / "ca.pem")).save(there)
    file, here = tmp_path / "physics.pass", tmp_path / "here"
    assert 0 == main(["flock", "pass", "ap@physics", "--home", str(there), "-o", str(file)])
    assert 0 == main(["flock", "use", str(file), "--as", "chem", "--home", str(here)])
    assert "CERTIFICATE\n" == Passes(here).load("chem").ca
    assert "CERTIFICATE\n" == Passes(here).authority("chem").read_text()


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (["pass", "bob@physics"], 1, "add bob@physics to flock_from"),
        (["pass", "bob"], 2, "write name@domain"),
        (["pass", "ap@physics", "--key", "{there}/pool.json"], 1, "holds no NKey seed"),
        (["use", "{there}/pool.json", "--as", "chem"], 2, "is no pass"),
        (["use", "{there}/none", "--as", "chem"], 2, "No such file"),
    ],
)
def test_what_cannot_be_is_told(
    there: Path, capsys: pytest.CaptureFixture[str], words: list[str], status: int, says: str
) -> None:
    """One sentence, with what to do."""
    said = [word.format(there=there) for word in words]
    assert status == main(["flock", *said, "--home", str(there)])
    assert says in capsys.readouterr().err


def test_the_rights_are_those_of_the_visitor(there: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """For a NATS server that somebody else configures."""
    assert 0 == main(["flock", "pass", "ap@physics", "--rights", "--home", str(there)])
    rights = json.loads(capsys.readouterr().out)
    assert "kettle.chemistry.cmd.startd.*.request_claims.v-ap=40physics" in rights["publish"]
    assert "_INBOX.v-ap=40physics.>" in rights["subscribe"]


def test_the_rights_of_a_collector_that_forwards(there: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    For servers of a site's own: they are another's than a schedd's, and put ads under the name of the pass alone.
    """
    assert 0 == main(["flock", "pass", "view@physics", "--view", "--rights", "--home", str(there)])
    rights = json.loads(capsys.readouterr().out)
    assert ["$KV.KETTLE_chemistry_ADS.Forwarded.view=40physics.>"] == rights["publish"]
    assert ["_INBOX.v-view=40physics.>"] == rights["subscribe"]
