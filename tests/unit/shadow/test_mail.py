"""Which mails a job gets about itself, and what they say."""

from typing import Final

import msgspec
import pytest

from kettle_services.shadow.projections.mail import Mail, MailProjector
from kettle_wire.ads import Scalar
from kettle_wire.attempts import ExitRecord
from kettle_wire.events import (
    ClusterSubmitted,
    Event,
    JobAssigned,
    JobCheckpointed,
    JobCompleted,
    JobHeld,
    JobReleased,
    JobStarted,
    Usage,
    encode,
    tag_of,
)
from kettle_wire.frames import Entry, Frame

NOON: Final = 1_789_992_000_000_000
ASSIGNED: Final = JobAssigned(attempt=1, claim="c", slot="slot1_1@m", startd="m")
STARTED: Final = JobStarted(attempt=1, pid=1, at=NOON / 1e6)
HELD: Final = JobHeld(code=34, subcode=102, reason="it ran out of memory")
BY_HAND: Final = JobHeld(code=1, reason="not now", by="ann")
GOOD: Final = JobCompleted(attempt=1, exit=ExitRecord(code=0), usage=Usage(wall=12.5, user_cpu=3.0))
BAD: Final = JobCompleted(attempt=1, exit=ExitRecord(code=2))
KILLED: Final = JobCompleted(attempt=1, exit=ExitRecord(signal=9))
LIFE: Final = (ASSIGNED, STARTED, HELD, JobReleased(), BY_HAND, JobReleased())


def submitted(**said: Scalar) -> ClusterSubmitted:
    return ClusterSubmitted(
        cluster=7,
        owner="ann",
        ad={"Cmd": "/bin/x", "Arguments": "a b", "Iwd": "/home/ann", **said},
        columns=[],
        rows=[[]],
    )


def frame(number: int, stream: str, event: Event) -> Frame:
    entry = Entry(stream=stream, version=number, type=tag_of(event), data=encode(event))
    return Frame(shard="schedd.ap", epoch=1, number=number, position=number, at=NOON, entries=[entry])


def told(submission: ClusterSubmitted, *events: Event) -> list[Mail]:
    """The mails about a life; the projector is stopped and goes on after each frame."""
    projector, mails = MailProjector("ap"), list[Mail]()
    streams: list[tuple[str, Event]] = [("cluster/7", submission), *(("job/7.0", event) for event in events)]
    for number, (stream, event) in enumerate(streams, start=1):
        mails += projector.feed(frame(number, stream, event))
        projector = MailProjector("ap", snapshot=projector.snapshot())
        assert [] == projector.feed(frame(number, stream, event))
    return mails


@pytest.mark.parametrize(
    ("wish", "end", "subjects"),
    [
        (0, BAD, []),
        (1, GOOD, ["is held: it ran out of memory", "has ended with exit code 0"]),
        (2, GOOD, ["has ended with exit code 0"]),
        (2, KILLED, ["was killed by signal 9"]),
        (3, GOOD, ["is held: it ran out of memory"]),
        (3, BAD, ["is held: it ran out of memory", "has ended with exit code 2"]),
        (3, KILLED, ["is held: it ran out of memory", "was killed by signal 9"]),
        (4, GOOD, ["has started on slot1_1@m"]),
    ],
)
def test_each_wish_has_its_mails(wish: int, end: Event, subjects: list[str]) -> None:
    """Never, always, complete, error, start; a hold by the owner himself is no news to him."""
    mails = told(submitted(JobNotification=wish), *LIFE, end)
    assert [f"[Kettle] Job 7.0 {subject}" for subject in subjects] == [mail.subject for mail in mails]


def test_the_mail_says_what_ran_what_it_used_and_what_was_asked_for() -> None:
    """To whom the submitter named, with the attributes that he named."""
    said: dict[str, Scalar] = {
        "JobNotification": 2,
        "NotifyUser": "ann@example.org",
        "EmailAttributes": "requestcpus,Nothing",
        "RequestCpus": 3,
    }
    (mail,) = told(submitted(**said), ASSIGNED, STARTED, GOOD)
    assert "ann@example.org" == mail.to
    assert (
        """\
Job 7.0 on ap has ended with exit code 0.

    /bin/x a b
    in /home/ann

submitted: 2026-09-21 12:00:00 UTC
started: 2026-09-21 12:00:00 UTC
ended: 2026-09-21 12:00:00 UTC
seconds on machines, all attempts together: 12.5
seconds of user CPU time: 3
starts: 1
requestcpus = 3
Nothing = undefined
"""
        == mail.body
    )


def test_nothing_is_kept_of_jobs_that_have_left() -> None:
    """What is remembered does not grow with the history."""
    projector = MailProjector("ap")
    for number, event in enumerate((ASSIGNED, GOOD), start=2):
        projector.feed(frame(1, "cluster/7", submitted(JobNotification=1)))
        projector.feed(frame(number, "job/7.0", event))
    state = msgspec.msgpack.decode(projector.snapshot())
    assert ({}, {}) == (state["clusters"], state["jobs"])


def test_no_more_is_kept_of_a_job_than_its_mails_say() -> None:
    """
    The rest of a large ad is looked at and forgotten; what was asked for is worked out from as much as that takes.
    """
    projector = MailProjector("ap")
    large: dict[str, Scalar] = {f"Attribute{number}": "x" * 100 for number in range(200)}
    asked: dict[str, Scalar] = {
        "JobNotification": 1,
        "EmailAttributes": "attribute7, CumulativeSlotTime, CheckpointNumber",
    }
    submission = submitted(RequestCpus=2, **large, **asked)
    few = submitted(JobNotification=1, **large)
    said = told(submission, *LIFE[:3], JobCheckpointed(attempt=1, number=1, at=NOON / 1e6), GOOD)
    sizes: list[int] = []
    for number, (stream, event) in enumerate(
        [("cluster/7", few), *(("job/7.0", event) for event in LIFE)], start=1
    ):
        projector.feed(frame(number, stream, event))
        sizes.append(len(projector.snapshot()))

    assert (
        f'\nattribute7 = "{"x" * 100}"\nCumulativeSlotTime = 2.500000000000000E+01\nCheckpointNumber = 0\n'
        in said[-1].body
    )
    assert max(sizes) < sizes[0] + 1500
