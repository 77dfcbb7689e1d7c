"""What the nodes of a workflow went through, in columns: a million nodes take little memory."""

from array import array
from enum import IntEnum

import msgspec


class Phase(IntEnum):
    """What a node does or waits for."""

    PARENTS = 0
    """It waits for nodes that come before it."""
    TURN = 1
    """It waits for its turn: a limit of the workflow, or because that is halted."""
    SCRIPT = 2
    """Its PRE or POST script is to be run, or runs."""
    SUBMISSION = 3
    """Its jobs are to be submitted."""
    MACHINE = 4
    """Its jobs wait for a machine."""
    HELD = 5
    """Its jobs are on hold."""
    RUNNING = 6
    """A job of it runs."""
    OVER = 7


class Step(msgspec.Struct, frozen=True, gc=False):
    """A node came into a phase."""

    at: float
    """Seconds since the epoch."""
    phase: Phase
    attempt: int


class Steps:
    """The steps of all nodes, each chained to the one before of the same node."""

    def __init__(self, nodes: int) -> None:
        self._last = array("q", [-1]) * nodes
        self._before = array("q")
        self._at = array("d")
        self._phase = bytearray()
        self._attempt = array("I")

    def add(self, node: int, at: float, phase: Phase, attempt: int) -> None:
        """One more step of a node."""
        self._before.append(self._last[node])
        self._last[node] = len(self._at)
        self._at.append(at)
        self._phase.append(phase)
        self._attempt.append(attempt)

    def last(self, node: int) -> Step | None:
        """The step in which a node is; None: nothing has happened to it."""
        place = self._last[node]
        return None if place < 0 else self._step(place)

    def of(self, node: int) -> list[Step]:
        """All steps of a node, in their order."""
        found: list[Step] = []
        place = self._last[node]
        while place >= 0:
            found.append(self._step(place))
            place = self._before[place]
        return found[::-1]

    def _step(self, place: int) -> Step:
        return Step(self._at[place], Phase(self._phase[place]), self._attempt[place])


class PhaseTimes:
    """How long all nodes together were in each phase, kept as steps are added."""

    def __init__(self, nodes: int) -> None:
        self._done = [0.0] * len(Phase)
        self._open = [0] * len(Phase)
        self._open[Phase.PARENTS] = nodes
        self._since = [0.0] * len(Phase)

    def begin(self, at: float) -> None:
        """All nodes wait from then on."""
        self._since[Phase.PARENTS] = at * self._open[Phase.PARENTS]

    def move(self, before: Phase, since: float, now: Phase, at: float) -> None:
        """A node goes from one phase, in which it was since a time, to another."""
        self._done[before] += at - since
        self._open[before] -= 1
        self._since[before] -= since
        self._open[now] += 1
        self._since[now] += at

    def until(self, at: float) -> list[float]:
        """By phase the seconds up to a time; those after the end of a node are no time of it."""
        return [
            0.0
            if phase is Phase.OVER
            else max(0.0, self._done[phase] + self._open[phase] * at - self._since[phase])
            for phase in Phase
        ]
