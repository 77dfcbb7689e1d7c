"""Knobs, and where the pool is."""

from pathlib import Path

import pytest

from kettle.client.connections.condor_config import CondorConfig, heed_token_file, pool_of
from kettle.client.connections.credentials import shown
from kettle.client.connections.pool_file import PoolFile
from kettle.client.errors import PoolNotFoundError


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    PoolFile(pool="physics", nats_url="nats://bus.example:4222", user="ada").save(home)
    return home


def test_a_variable_wins_over_a_file(tmp_path: Path) -> None:
    """In any case of letters; a value may name others."""
    (tmp_path / "condor_config").write_text(
        "# a comment\nSCHEDD_NAME = one\nA = $(B)/$(schedd_name)/$(NONE)\n  b=two \\\n words\nLoop = $(LOOP)\n"
        "Listed = 1, \\\n# 2, \\\n3\nFed = one\x0ctwo\n"
    )
    knobs = CondorConfig(
        {"KETTLE_HOME": str(tmp_path), "_CONDOR_Schedd_Name": "other", "_condor_FLAG": "True"}
    )
    assert "other" == knobs.get("schedd_NAME")
    assert "two  words/other/" == knobs.get("A")
    assert "$(LOOP)" == knobs.get("loop")
    assert ("1, 3", "one\x0ctwo") == (knobs.get("LISTED"), knobs.get("FED"))
    assert knobs.flag("FLAG", default=False)
    assert 2.5 == knobs.number("NO_SUCH", 2.5)
    assert None is knobs.get("NO_SUCH")


def test_a_file_of_ones_own_is_named_by_a_variable(tmp_path: Path) -> None:
    file = tmp_path / "mine"
    file.write_text("X = 1\n")
    assert "1" == CondorConfig({"CONDOR_CONFIG": str(file), "KETTLE_HOME": str(tmp_path)}).get("X")


@pytest.mark.parametrize(
    "pool",
    [
        "", "physics", "bus.example", "bus.example:4222", "bus.example:9618", "bus.example:9618?sock=collector",
        "elsewhere:9618, bus.example:9618",
    ],
)  # fmt: skip
def test_a_pool_is_known_by_its_file(home: Path, pool: str) -> None:
    """By its name, and by its host, with any port: that of HTCondor's collector is not the one of a bus."""
    environ = {"KETTLE_HOME": str(home)}
    assert "physics" == pool_of(CondorConfig(environ), pool=pool, environ=environ).pool


def test_a_pool_is_named_by_what_htcondor_knows(home: Path) -> None:
    """COLLECTOR_HOST, SCHEDD_HOST and SCHEDD_NAME, unless it was typed."""
    environ = {"HOME": "/nonexistent", "_CONDOR_COLLECTOR_HOST": str(home), "_CONDOR_SCHEDD_HOST": "two"}
    found = pool_of(CondorConfig(environ), environ=environ)
    assert ("physics", "two") == (found.pool, found.schedd)
    assert "three" == pool_of(CondorConfig(environ), name="three", environ=environ).schedd
    direct = pool_of(CondorConfig({}), pool="nats://other:1", environ={"KETTLE_POOL": "x"})
    assert ("nats://other:1", "x") == (direct.nats_url, direct.pool)


def test_an_encrypted_pool_is_known_by_the_authority_of_a_knob(home: Path) -> None:
    """For an address that says that it is encrypted; what is Kettle's own wins."""
    environ = {
        "_condor_AUTH_SSL_CLIENT_CAFILE": "/ca.pem",
        "_condor_COLLECTOR_HOST": "tls://bus.example:4222",
    }
    assert "/ca.pem" == pool_of(CondorConfig(environ), environ=environ).ca
    environ["KETTLE_NATS_CA"] = "/own.pem"
    assert "/own.pem" == pool_of(CondorConfig(environ), environ=environ).ca
    clear = {**environ, "_condor_COLLECTOR_HOST": "nats://bus.example:4222"}
    del clear["KETTLE_NATS_CA"]
    assert not pool_of(CondorConfig(clear), environ=clear).ca


def test_a_pool_known_by_its_address_is_believed_by_the_authority_of_a_knob(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As facilities name it to HTCondor's commands, with nothing else."""
    asked: list[tuple[str, str]] = []

    def pool_at(url: str, home: Path, ca: str) -> PoolFile:
        asked.append((url, ca))
        return PoolFile(nats_url="tls://bus.example:4222")

    monkeypatch.setattr("kettle.client.connections.way_in.pool_at", pool_at)
    environ = {
        "HOME": "/nonexistent",
        "_condor_AUTH_SSL_CLIENT_CAFILE": "/ca.crt",
        "_condor_COLLECTOR_HOST": "https://pool.example:9643",
    }
    pool_of(CondorConfig(environ), environ=environ)
    assert [("https://pool.example:9643", "/ca.crt")] == asked


def test_the_place_of_a_token_is_told_as_it_was_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the variable that somebody has set, not by the one into which its value was put."""
    monkeypatch.setenv("BEARER_TOKEN_FILE", "/token")
    assert "BEARER_TOKEN_FILE" == shown("BEARER_TOKEN_FILE")
    monkeypatch.setenv("_condor_SCITOKENS_FILE", "/token")
    assert "_condor_SCITOKENS_FILE" == shown("BEARER_TOKEN_FILE")
    monkeypatch.setenv("_condor_SCITOKENS_FILE", "/other")
    assert "BEARER_TOKEN_FILE" == shown("BEARER_TOKEN_FILE")


@pytest.mark.parametrize(
    "name", ["_condor_SCITOKENS_FILE", "_CONDOR_SCITOKENS_FILE", "_CONDOR_SciTokens_File"]
)
def test_the_file_of_a_token_is_where_htcondor_looks_first(name: str) -> None:
    """A variable in any case of letters; an empty one says nothing."""
    environ = {name: "/token", "BEARER_TOKEN": "other", "BEARER_TOKEN_FILE": "/other"}
    heed_token_file(environ)
    assert {name: "/token", "BEARER_TOKEN_FILE": "/token"} == environ
    untouched = {name: "", "BEARER_TOKEN": "other"}
    heed_token_file(untouched)
    assert {name: "", "BEARER_TOKEN": "other"} == untouched


def test_a_pool_that_is_not_known_is_no_pool(home: Path, tmp_path: Path) -> None:
    with pytest.raises(PoolNotFoundError, match=r"Can't find address for pool elsewhere"):
        pool_of(CondorConfig({}), pool="elsewhere", environ={"KETTLE_HOME": str(home)})
    with pytest.raises(PoolNotFoundError, match="no pool is up"):
        pool_of(CondorConfig({}), environ={"KETTLE_HOME": str(tmp_path)})
