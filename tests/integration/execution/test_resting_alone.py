"""Starters that run one job after the other on a machine without control groups."""

import hashlib

import msgspec
import pytest

from kettle.testing.submit_side import SubmitSide, output, script
from kettle_services.startd.settings import StartdSettings
from kettle_services.startd.starters import pool as starter_pool
from kettle_wire.commands.startd import InputFile

LARGE = 60_000_000


@pytest.fixture
def settings(settings: StartdSettings) -> StartdSettings:
    return msgspec.structs.replace(settings, cgroups=False)


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starters wait for the next job however slow the machine is."""
    monkeypatch.setattr(starter_pool, "_REST_S", 600.0)


async def test_a_job_is_not_as_large_as_its_starter_once_was(submitter: SubmitSide) -> None:
    """What the starter had in its hands for one job is nothing that the next one used."""
    data = bytes(LARGE)
    digest = hashlib.sha256(data).hexdigest()
    inputs = [InputFile(name="large", mode=0o644, size=LARGE, sha256=digest, data=data)]
    first = await submitter.start(script("echo $PPID"), inputs=inputs)
    before = await submitter.final(first)
    following = await submitter.start(script("echo $PPID"), claim=first.key)
    after = await submitter.final(following)

    assert before.result.exit is not None
    assert after.result.exit is not None
    assert output(before) == output(after), "it was not the same starter"
    assert after.result.usage.memory_kib < LARGE // 2048
