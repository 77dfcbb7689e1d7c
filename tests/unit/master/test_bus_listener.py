"""
Where the master's own NATS server is reached from other machines, and what is refused before it is shown.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kettle.pki.authority_files import AuthorityFiles
from kettle.runtime import SettingsError
from kettle_services.master import bus_listener
from kettle_services.master.settings import MasterSettings


@pytest.fixture
def files(tmp_path: Path) -> AuthorityFiles:
    """An authority with certificates: a good one, and one that has expired."""
    files, now = AuthorityFiles(tmp_path), datetime.now(UTC)
    files.make("Trial", now=now)
    files.issue(["bus.example.org", "127.0.0.1"], "server", now=now)
    files.issue(["old", "127.0.0.1"], "server", now=now - timedelta(days=3), days=1)
    return files


def settings(files: AuthorityFiles, *, listen: str = "", name: str = "bus.example.org") -> MasterSettings:
    kept = files.kept(name)
    return MasterSettings(
        nats_listen=listen,
        nats_certificate=str(kept.certificate),
        nats_key=str(kept.key),
        nats_ca=str(files.kept("ca").certificate),
    )


def test_a_server_is_reached_by_the_name_that_it_listens_on(files: AuthorityFiles) -> None:
    """
    On the loopback interface at any port, if nothing else is said; without a certificate there alone, in the clear.
    """
    assert (None, 0) == bus_listener.of(MasterSettings())
    listener, port = bus_listener.of(settings(files))
    assert listener is not None
    assert ("127.0.0.1", "127.0.0.1", 0) == (listener.host, listener.name, port)
    listener, port = bus_listener.of(settings(files, listen="bus.example.org:4222"))
    assert listener is not None
    assert ("bus.example.org", "bus.example.org", 4222) == (listener.host, listener.name, port)


def test_a_certificate_that_no_client_accepts_is_not_shown(files: AuthorityFiles) -> None:
    """Expired, or not for the name by which clients connect, which on all addresses is the host's."""
    with pytest.raises(SettingsError, match=r"nats_certificate of .*has expired: .*kettle pki renew"):
        bus_listener.of(settings(files, name="old"))
    with pytest.raises(SettingsError, match="is for other names"):
        bus_listener.of(settings(files, listen="other.example.org:4222"))
    with pytest.raises(SettingsError, match="is for other names"):
        bus_listener.of(settings(files, listen="0.0.0.0:4222"))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"nats_listen": "0.0.0.0:4222"}, "would send their secrets in the clear"),
        ({"nats_listen": "4222"}, "is not NAME:PORT"),
        ({"nats_listen": "bus:x"}, "is not NAME:PORT"),
        ({"nats_certificate": "a"}, "are given together"),
        ({"nats_key": "a"}, "are given together"),
        ({"nats_certificate": "a", "nats_key": "b"}, "nats_ca in .kettle."),
        ({"nats_url": "nats://bus", "nats_certificate": "a", "nats_key": "b"}, "nats_url names another"),
    ],
)
def test_settings_that_would_not_be_safe_are_refused(given: dict[str, str], sentence: str) -> None:
    """With the name of the setting and what to do."""
    with pytest.raises(ValueError, match=sentence):
        MasterSettings(**given)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
