"""The configuration of a pool's server: written once, and only what is missing."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from kettle.pool.site import Site, SiteError, set_up
from kettle_services.cli.configuration.check import check

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SITE = Site(pool="physics", address="bus.example.org", administrators=["grace"])


def files(home: Path) -> dict[str, bytes]:
    return {str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*") if path.is_file()}


def test_it_is_written_once(tmp_path: Path) -> None:
    """
    The first call says what it wrote, the second has nothing to write; keys are closed to others, and the
    settings are right.
    """
    home = tmp_path / "pool"
    assert ["ca.pem", "bus.example.org.pem", "kettle.toml"] == [
        each.path.name for each in set_up(SITE, home, now=datetime.now(UTC))
    ]
    before = files(home)
    assert [] == set_up(SITE, home, now=datetime.now(UTC))
    assert before == files(home)
    assert {0o600} == {path.stat().st_mode & 0o777 for path in (home / "pki").glob("*.key")}
    assert [] == check({"KETTLE_HOME": str(home)})


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    """And says the same."""
    home = tmp_path / "pool"
    said = set_up(SITE, home, now=NOW, dry_run=True)
    assert not home.exists()
    assert [each.path for each in said] == [each.path for each in set_up(SITE, home, now=NOW)]


def test_what_the_administrator_said_stays(tmp_path: Path) -> None:
    """
    Another list of daemons is his; another address of the bus is a contradiction, and nothing is written.
    """
    home = tmp_path / "pool"
    home.mkdir()
    (home / "kettle.toml").write_text('[master]\ndaemon_list = ["collector", "iam"]\n')
    set_up(SITE, home, now=NOW)
    assert 'daemon_list = ["collector", "iam"]\n' in (home / "kettle.toml").read_text()
    other = tmp_path / "other"
    other.mkdir()
    (other / "kettle.toml").write_text('[master]\nnats_listen = "127.0.0.1:4222"\n')
    with pytest.raises(
        SiteError,
        match=r'nats_listen of \[master\] is "127.0.0.1:4222", and what is wanted is "bus.example.org:4222"',
    ):
        set_up(SITE, other, now=NOW)
    assert ["kettle.toml"] == list(files(other))
