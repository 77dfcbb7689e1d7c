"""Old events in places other than the log."""

from typing import Any

import msgspec
import pytest

from kettle.userlog import projector_state
from kettle_services.schedd.domain.queue import fold, working_set
from kettle_wire.events import CODEC, ClusterSubmitted, JobHeld, JobReleased, Superseded
from kettle_wire.events.codec import Codec
from kettle_wire.jobs import JobId


class ClusterSent(Superseded, frozen=True, tag="cluster.sent/1"):
    """As if submissions had had another type once."""

    cluster: int
    who: str
    jobs: int

    def upcast(self) -> ClusterSubmitted:
        return ClusterSubmitted(
            cluster=self.cluster, owner=self.who, ad={}, columns=[], rows=[[] for _ in range(self.jobs)]
        )


def test_a_schedd_starts_from_rows_of_an_older_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The working set holds events as they were written; a newer schedd lifts them as it lifts those of the log.
    """
    older: Codec[Any] = Codec(list(CODEC.written.values()), [ClusterSent])
    monkeypatch.setattr(working_set, "decode", older.decode)
    row = msgspec.msgpack.encode((ClusterSent(cluster=7, who="ann", jobs=2), 10**6))

    restored = fold.Queue("ap1")
    working_set.restore(restored, [("cluster/7", row)])

    assert ("ann", [JobId(7, 0), JobId(7, 1)]) == (restored.owner(JobId(7, 0)), list(restored.jobs))


class JobStopped(Superseded, frozen=True, tag="job.stopped/1"):
    """As if holds had had another type once."""

    why: str

    def upcast(self) -> JobHeld:
        return JobHeld(code=1, reason=self.why)


def test_what_a_user_log_puts_off_may_be_old(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint holds events that are written later, perhaps by a newer shadow, and it lifts them too."""
    older: Codec[Any] = Codec(list(CODEC.written.values()), [JobStopped])
    monkeypatch.setattr(projector_state, "decode", older.decode)
    job = msgspec.msgpack.decode(
        msgspec.msgpack.encode({"attempt": 1, "waiting": [JobStopped(why="a reason")]}),
        type=projector_state.Job,
    )
    job.put_off(JobReleased(reason="another"))

    assert [JobHeld(code=1, reason="a reason"), JobReleased(reason="another")] == job.put_off_so_far()
