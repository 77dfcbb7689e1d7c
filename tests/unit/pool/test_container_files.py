"""What a pool in containers is given."""

import re
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kettle.auth.bus_permissions import permissions
from kettle.bus.credentials import Credential
from kettle.pool.container_files import DATABASE_ROLES, SERVICES, ContainerFilesError, ContainerPool, make
from kettle.storage.service_roles import RIGHTS, role_name
from kettle_wire.identity import daemon
from kettle_wire.subjects import Subjects

NOW = datetime(2026, 11, 26, tzinfo=UTC)
POOL = ContainerPool(pool="demo", names=["bus.example.org"])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("containers") / "pool"
    make(POOL, directory, now=NOW)
    return directory


def test_each_service_has_what_its_permissions_allow(place: Path) -> None:
    """What the server believes of a service is what the table of permissions says, and nothing more."""
    for role in SERVICES:
        statement = Credential.read(place / "secrets" / f"{role}.creds")
        publish, _ = permissions(role, Subjects("demo"), daemon(role))
        body = statement.jwt.split(".")[1]
        import base64
        import json

        said = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        assert set(publish) == set(said["nats"]["pub"]["allow"]), role


def test_each_service_with_a_role_of_the_database_has_a_password_of_its_own(place: Path) -> None:
    """
    The address in its file is for its own role; the database's roles are all there, and no password is used twice.
    """
    assert set(RIGHTS) == set(DATABASE_ROLES)
    passwords: set[str] = set()
    for role in DATABASE_ROLES:
        url = (place / "secrets" / f"{role}.database").read_text()
        found = re.fullmatch(r"postgresql://(\w+):(\w+)@postgres:5432/kettle\n", url)
        assert found is not None
        assert role_name("kettle", role) == found[1]
        assert (place / "secrets" / f"{role}.password").read_text() == found[2]
        passwords.add(found[2])
    assert len(DATABASE_ROLES) == len(passwords)


def test_settings_hold_no_secret(place: Path) -> None:
    """They name files, and the keys of the operator are in none that a container gets."""
    text = (place / "kettle.toml").read_text()
    settings = tomllib.loads(text)
    assert "file:/run/secrets/schedd.database" == settings["schedd"]["database_url"]
    for path in (place / "secrets").iterdir():
        content = path.read_bytes().strip()
        assert content not in text.encode(), path
    seeds = {
        path.read_bytes().strip() for path in (place / "trust").glob("*.nk") if path.stem != "user-sentinel"
    } - {(place / "secrets/sign-worker.nk").read_bytes().strip()}
    given = b"".join(
        path.read_bytes() for path in (place / "secrets").iterdir() if path.name != "people-keys.json"
    )
    operator = [seed for seed in seeds if seed in given]
    assert [] == operator


def test_said_again_nothing_is_made_anew(place: Path) -> None:
    """Keys, passwords and certificates stay, and so does what somebody has said in the settings."""
    kept = {
        path: path.read_bytes()
        for path in place.rglob("*")
        if path.suffix in {".nk", ".password", ".key", ".pem", ".seal"}
    }
    settings = place / "kettle.toml"
    settings.write_text(settings.read_text() + "\n[startd]\nnum_cpus = 3\n")
    make(POOL, place, now=NOW + timedelta(days=1))

    assert kept == {path: path.read_bytes() for path in kept}
    assert 3 == tomllib.loads(settings.read_text())["startd"]["num_cpus"]
    assert all(0o077 & path.stat().st_mode == 0 for path in (place / "secrets").iterdir())


def test_settings_that_say_something_else_are_named(tmp_path: Path) -> None:
    """A file for another pool is not overwritten."""
    make(POOL, tmp_path, now=NOW)
    with pytest.raises(ContainerFilesError, match=r'kettle\.toml: pool of \[kettle\] is "demo"'):
        make(ContainerPool(pool="other"), tmp_path, now=NOW)


def test_names_that_a_certificate_lacks_are_named(tmp_path: Path) -> None:
    """
    It is not replaced in silence, because who has pinned it would not know it again; without it another is made.
    """
    make(POOL, tmp_path, now=NOW)
    wanted = ContainerPool(pool="demo", names=["bus.example.org", "2001:DB8::7"])
    with pytest.raises(ContainerFilesError, match=r"nats\.pem is not for 2001:db8::7: remove it"):
        make(wanted, tmp_path, now=NOW)
    (tmp_path / "pki/nats.pem").unlink()
    make(wanted, tmp_path, now=NOW)
    make(wanted, tmp_path, now=NOW)


def test_several_servers_are_a_cluster(tmp_path: Path) -> None:
    """
    One file serves all: each takes its name from its host, and streams have as many copies as there are servers, up to three.
    """
    make(ContainerPool(pool="demo", bus_servers=3), tmp_path, now=NOW)
    text = (tmp_path / "bus/nats.conf").read_text()
    assert "server_name: $HOSTNAME\n" in text
    assert 3 == text.count("@nats-")
    assert 3 == tomllib.loads((tmp_path / "kettle.toml").read_text())["kettle"]["nats_replicas"]
