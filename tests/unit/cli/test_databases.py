"""Where `kettle log` looks for the log."""

from pathlib import Path

import pytest

from kettle_services.cli.errors import CommandError
from kettle_services.cli.log.databases import archive_directory, databases

FILE = """
[kettle]
archive_directory = "/srv/archive"

[accounting]
databases = ["postgresql://db/ap1"]

[schedd]
lease = 10.0
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("KETTLE_CONFIG", "KETTLE_ACCOUNTING_DATABASES", "KETTLE_ARCHIVE_DIRECTORY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KETTLE_DATABASE_URL", "postgresql://db/pool")
    return tmp_path


def test_what_the_services_were_told_in_their_file(home: Path) -> None:
    """Readers of the log look where `kettle.toml` makes the services write it."""
    (home / "kettle.toml").write_text(FILE)
    assert ["postgresql://db/pool", "postgresql://db/ap1"] == databases(home)
    assert Path("/srv/archive") == archive_directory(home)


def test_a_variable_is_stronger_than_the_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is for the services."""
    (home / "kettle.toml").write_text(FILE)
    monkeypatch.setenv("KETTLE_ACCOUNTING_DATABASES", "[]")
    monkeypatch.setenv("KETTLE_ARCHIVE_DIRECTORY", "/elsewhere")
    assert ["postgresql://db/pool"] == databases(home)
    assert Path("/elsewhere") == archive_directory(home)


def test_without_a_file(home: Path) -> None:
    """One database, and the archive in the pool's directory."""
    assert ["postgresql://db/pool"] == databases(home)
    assert home / "archive" == archive_directory(home)


def test_a_file_that_says_something_else(home: Path) -> None:
    """It is refused with its path and the place in it, rather than looked at in part."""
    (home / "kettle.toml").write_text("[accounting]\ndatabases = 3\n")
    with pytest.raises(CommandError, match=r"kettle.toml: .*accounting.databases"):
        databases(home)
