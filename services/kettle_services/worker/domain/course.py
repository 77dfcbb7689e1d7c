"""
When a machine takes no more jobs and when it ends, no matter who says so: the scaler, a notice, its own jobs, or nobody at all.

All moments are on the clock that runs since the machine booted: nobody may set that one, and the scaler says how long, never
when.
"""

from typing import Final

import msgspec

from kettle_wire.bootstrap import Bootstrap
from kettle_wire.commands.scaler import Notice, Phase, Renewed

NEVER: Final = float("inf")


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """Where a machine is between its first moment and its last."""

    phase: Phase
    ends: float
    """Nothing of it runs any more."""
    hurry: float
    """Seconds before that in which jobs that run are asked to end."""
    grace: float
    """Seconds without a renewal after which it takes no more jobs."""
    finish: float
    """Seconds that its jobs may go on then."""
    renewed: float
    """When the lease was renewed last."""
    empty_by: float = NEVER
    """Jobs that run then are asked to end; never: it takes jobs."""
    why: str = ""
    """Why it takes no more."""

    @property
    def draining(self) -> bool:
        """Whether it takes no more jobs."""
        return self.empty_by != NEVER

    @property
    def last_call(self) -> float:
        """When jobs are asked to end, whatever else happens."""
        return min(self.empty_by, self.ends - self.hurry)

    @property
    def dead(self) -> float:
        """
        When somebody else has to end it: if it keeps to its course it is over by then, and if it does not it hangs.
        """
        return min(self.ends, self.renewed + self.grace + self.finish + self.hurry)

    def due(self, at: float) -> float:
        """The next moment after this one at which something changes by itself."""
        orphaned = self.renewed + self.grace
        return min(self.last_call, orphaned) if at < orphaned else self.last_call


def begun(told: Bootstrap, at: float) -> Course:
    """The course of a machine that has just learned what it is for."""
    return Course(
        phase=Phase.JOINED,
        ends=at + told.life,
        hurry=min(told.hurry, told.life / 2),
        grace=told.orphan_grace,
        finish=told.finish,
        renewed=at,
    )


def entered(course: Course, phase: Phase) -> Course:
    """It is so far; one that takes no more jobs does not take some again."""
    return (
        course if course.draining and phase == Phase.READY else msgspec.structs.replace(course, phase=phase)
    )


def renewed(course: Course, answer: Renewed, at: float) -> Course:
    """
    The scaler has answered.  A life never becomes longer than it was, and when it is over jobs have their last moment yet.
    """
    ends = min(course.ends, at + max(answer.life, course.hurry))
    course = msgspec.structs.replace(course, renewed=at, ends=ends)
    match answer.order:
        case "drain":
            by = at + answer.within if answer.within else course.ends - course.hurry
            return _drained(course, by, answer.words or "the scaler says so", Phase.DRAINING)
        case "stop":
            return _drained(course, at, answer.words or "the scaler says so", Phase.DRAINING)
        case _:
            return course


def noticed(course: Course, notice: Notice, at: float) -> Course:
    """The machine will be taken away: its jobs end some time before."""
    by = at + max(0.0, notice.within - course.hurry)
    return _drained(course, by, notice.words or f"a notice ({notice.kind})", Phase.DRAINING)


def quarantined(course: Course, why: str, at: float) -> Course:
    """Its jobs fail one after the other: those that run may end, and no more come."""
    return _drained(course, at + course.finish, why, Phase.QUARANTINED)


def at_moment(course: Course, at: float) -> Course:
    """What has changed by the passing of time alone."""
    if at >= course.ends - course.hurry:
        return _drained(course, at, "its life is over", Phase.DRAINING)
    if at >= course.renewed + course.grace:
        why = f"its lease was not renewed for {course.grace:g} s"
        return _drained(course, at + course.finish, why, Phase.DRAINING)
    return course


def _drained(course: Course, by: float, why: str, phase: Phase) -> Course:
    """The earliest moment counts, and the first reason."""
    by = min(by, course.empty_by, course.ends - course.hurry)
    if course.draining:
        return msgspec.structs.replace(course, empty_by=by)
    return msgspec.structs.replace(course, empty_by=by, why=why, phase=phase)
