"""What machines wrote is kept apart from what everybody may follow."""

import stat
from pathlib import Path

import msgspec
import pytest

from kettle_services.scaler import console_files
from kettle_services.scaler.console_files import ConsoleFiles
from kettle_wire.events import decode, encode
from kettle_wire.events.lease import LeaseConsole

from .leases_lab import LeaseLab


def test_what_a_machine_wrote_is_for_the_pools_account(tmp_path: Path) -> None:
    """
    It is read again by the name of the lease, and by nobody else; of one that is not kept nothing is known.
    """
    kept = ConsoleFiles(tmp_path / "consoles")
    kept.keep("crowd-1-1", "no route to host\nat all")
    assert ("no route to host\nat all", None) == (kept.read("crowd-1-1"), kept.read("crowd-1-2"))
    assert {0o600} == {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "consoles").iterdir()}
    kept.keep("../../elsewhere", "x")
    assert ["consoles"] == [path.name for path in tmp_path.iterdir()]


def test_the_oldest_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A template that never boots fills no disk."""
    monkeypatch.setattr(console_files, "MOST", 2)
    kept = ConsoleFiles(tmp_path)
    for number in range(4):
        kept.keep(f"crowd-1-{number}", "x")
    assert [None, None, "x", "x"] == [kept.read(f"crowd-1-{number}") for number in range(4)]


def test_no_event_has_the_words() -> None:
    """Everybody in the pool may follow events."""
    lab = LeaseLab()
    [lease] = lab.request()
    lab.after(1.0)
    lab.made(lease)
    lab.removed(lease, console="password=hunter2")
    assert any(isinstance(event, LeaseConsole) and event.size == 16 for event in lab.events)
    assert not any(b"hunter2" in encode(event) for event in lab.events)
    assert lab.lease(lease).console


def test_a_record_with_the_words_themselves_is_read_without_them() -> None:
    """So it was recorded before they were kept in files; a scaler that could not read it would not begin."""
    before = msgspec.msgpack.encode({"event": "lease.console/1", "text": "no route to host"})
    assert LeaseConsole() == decode(before)
