"""The journal on disk."""

import errno
import os
from pathlib import Path

import msgspec
import pytest

import kettle_services.startd.state.journal
import kettle_services.startd.state.recorder
from kettle_services.startd.domain.slots.resources import Resources
from kettle_services.startd.domain.slots.slot import whole_machine
from kettle_services.startd.domain.state.changes import (
    AttemptStopped,
    Change,
    ClaimClosing,
    Claimed,
    ClaimRemoved,
    ClaimWaiting,
    Renewed,
    StarterConnected,
)
from kettle_services.startd.domain.state.claim import Claim, RunningAttempt, StopOrder
from kettle_services.startd.domain.state.machine import Facts, Machine
from kettle_services.startd.state.journal import Journal
from kettle_services.startd.state.recorder import NotRecordedError, Recorder
from kettle_wire.attempts import Ending
from kettle_wire.commands.startd import ClaimKey
from kettle_wire.jobs import JobId

CHANGES: list[Change] = [StarterConnected("c1", 1, 2), ClaimClosing("c1", "why"), ClaimRemoved("c1")]

CLAIM = Claim(
    key=ClaimKey("c1", "s1"), schedd="schedd", submitter="alice", slot=1, resources=Resources(1, 1, 1),
    lease=60.0, deadline=100.0, made=0.0, changed=0.0,
)  # fmt: skip


def test_what_was_recorded_is_read_back(tmp_path: Path) -> None:
    """In order, across a restart."""
    journal = Journal(tmp_path / "journal", "boot")
    journal.restart(CHANGES[:1])
    journal.append(CHANGES[1:])
    journal.close()

    assert CHANGES == Journal(tmp_path / "journal", "boot").load()


def test_a_torn_end_is_ignored(tmp_path: Path) -> None:
    """Nobody has acted on what was not written whole."""
    path = tmp_path / "journal"
    journal = Journal(path, "boot")
    journal.restart(CHANGES)
    journal.close()
    path.write_bytes(path.read_bytes()[:-1])

    assert CHANGES[:-1] == Journal(path, "boot").load()


def test_after_a_boot_nothing_is_true_any_more(tmp_path: Path) -> None:
    """Processes, clocks and claims are gone."""
    journal = Journal(tmp_path / "journal", "first boot")
    journal.restart(CHANGES)
    journal.close()

    assert [] == Journal(tmp_path / "journal", "second boot").load()


def test_there_need_not_be_a_journal(tmp_path: Path) -> None:
    """The first start."""
    assert [] == Journal(tmp_path / "journal", "boot").load()


def test_what_an_earlier_version_wrote_is_read(tmp_path: Path) -> None:
    """Orders to end attempts once had codes of their own; they are wherever a claim may have one."""
    before = {"code": 21, "reason": "go home", "hard": True, "hold": True, "subcode": 7, "at": 5.0}
    order = StopOrder(Ending(code=21, reason="go home", subcode=7), hard=True, at=5.0)
    attempt = RunningAttempt(
        job=JobId(1, 0), attempt=1, sequence=0, ad={"code": 1, "reason": "mine"}, stop=order
    )
    claim = msgspec.structs.replace(CLAIM, attempt=attempt, then=order)
    changes: list[Change] = [
        AttemptStopped("c1", order, 6.0),
        ClaimClosing("c1", "go home", order, 6.0),
        ClaimClosing("c1", "go home"),
        Claimed(claim),
    ]
    told = msgspec.to_builtins(changes)
    told[0]["stop"] = told[1]["then"] = told[3]["claim"]["then"] = told[3]["claim"]["attempt"]["stop"] = (
        before
    )
    records = [b"boot", *map(msgspec.msgpack.encode, told)]
    (tmp_path / "journal").write_bytes(b"".join(len(r).to_bytes(4, "big") + r for r in records))

    assert changes == Journal(tmp_path / "journal", "boot").load()


def fill_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every write takes half of its bytes, and then there is no room."""

    def put(fd: int, data: bytes) -> None:
        os.write(fd, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(kettle_services.startd.state.journal, "write_all", put)


def test_what_found_no_room_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is recorded afterwards, when there is room, can be read."""
    journal = Journal(tmp_path / "journal", "boot")
    journal.restart(CHANGES[:1])
    with monkeypatch.context() as patch:
        fill_the_disk(patch)
        with pytest.raises(OSError, match="No space"):
            journal.append([StarterConnected("lost", 8, 9)])
        with pytest.raises(OSError, match="No space"):
            journal.restart([StarterConnected("lost", 8, 9)])
    journal.append(CHANGES[1:])
    journal.close()

    assert CHANGES == Journal(tmp_path / "journal", "boot").load()
    assert ["journal"] == [path.name for path in tmp_path.iterdir()]


def books(path: Path) -> tuple[Machine, Recorder]:
    total = Resources(1, 1, 1)
    machine = Machine(
        Facts(name="host", total=total, detected=total, slots=whole_machine(total)), capability=""
    )
    return machine, Recorder(machine, Journal(path / "journal", "boot"), places=[path])


def test_on_a_full_disk_nothing_begins_and_everything_else_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new claim is refused, the old one renewed in memory; with room, the journal knows all of it."""
    machine, kept = books(tmp_path)
    kept.open()
    kept.record([Claimed(CLAIM)])
    other = msgspec.structs.replace(CLAIM, key=ClaimKey("c2", "s2"), slot=2)
    with monkeypatch.context() as patch:
        fill_the_disk(patch)
        with pytest.raises(NotRecordedError, match="the disk is full"):
            kept.record([Claimed(other)])
        kept.record([Renewed(["c1"], 200.0)])
        assert not kept.check_disk()
        assert "the disk is full" in machine.trouble
        assert (["c1"], 200.0) == (list(machine.claims), machine.claims["c1"].deadline)

    assert kept.check_disk()
    assert not machine.trouble
    kept.record([Claimed(other)])
    kept.close()
    after, again = books(tmp_path)
    again.open()
    again.close()
    assert machine.claims == after.claims


def test_nobody_makes_room_for_a_claim_that_cannot_be_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A waiting claim comes with the end of another: on a full disk neither happens, and the job goes on."""
    machine, kept = books(tmp_path)
    kept.open()
    kept.record([Claimed(CLAIM)])
    heir = msgspec.structs.replace(CLAIM, key=ClaimKey("c2", "s2"), after=["c1"])
    fill_the_disk(monkeypatch)

    with pytest.raises(NotRecordedError, match="the disk is full"):
        kept.record([ClaimWaiting(heir), ClaimClosing("c1", "a better job")])

    assert ({"c1": CLAIM}, {}) == (machine.claims, machine.waiting)


def test_a_startd_starts_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It knows what its predecessor knew, and accepts nothing."""
    _, first = books(tmp_path)
    first.open()
    first.record([Claimed(CLAIM)])
    first.close()
    machine, second = books(tmp_path)
    fill_the_disk(monkeypatch)

    second.open()

    assert {"c1": CLAIM} == machine.claims
    assert "the disk is full" in machine.trouble


def test_little_room_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Although the journal could still be written, a job could not begin."""
    machine, kept = books(tmp_path)
    monkeypatch.setattr(kettle_services.startd.state.recorder, "RESERVED_BYTES", 1 << 62)

    kept.open()
    kept.close()

    assert "the disk is full" in machine.trouble
