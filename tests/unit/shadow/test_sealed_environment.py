"""A job whose environment cannot be opened any more."""

from typing import Any, cast

from kettle.jobs.sealed_attributes import AttributeSeal
from kettle_services.shadow.attempts.preparation import prepare
from kettle_wire.attempts import AttemptResult
from kettle_wire.codes import HoldCode
from kettle_wire.commands.shadow import Assignment
from kettle_wire.commands.startd import ClaimKey
from kettle_wire.jobs import JobId


async def test_it_is_held_before_a_machine_works_for_it() -> None:
    """
    It would run with a wrong environment; the reason says what was lost, and nothing of what was sealed.
    """
    ad = AttributeSeal([b"\1" * 32]).sealed({"Cmd": "/bin/true", "Environment": "A=canary"}, "ada")
    still = AttributeSeal([bytes(32)]).opened(ad, "ada")
    order = Assignment(
        job=JobId(1, 0), attempt=1, key=ClaimKey("c", "s"), startd="n1", slot="slot1@n1", ad=still
    )
    unused = cast("Any", None)
    ended = await prepare(order, unused, unused)
    assert isinstance(ended, AttemptResult)
    assert ended.ending is not None
    assert HoldCode.CorruptedCredential == ended.ending.code
    assert "lost the key with which it was sealed: submit the job again" in ended.ending.reason
    assert str(still["Environment"]) not in ended.ending.reason
