"""
The jobs of a node's cluster as the facts of a workflow tell of them: how many are left, and which run or are held.
"""

import msgspec

from kettle_wire.codes import NodeJobKind
from kettle_wire.events.workflow import NodeJobFact


class ClusterJobs(msgspec.Struct, kw_only=True):
    """The jobs of one cluster."""

    left: int
    """Those that have not left the queue, with those that have not been made yet."""
    running: set[int] = msgspec.field(default_factory=set)
    held: set[int] = msgspec.field(default_factory=set)

    @property
    def idle(self) -> int:
        """Those that wait for a machine."""
        return self.left - len(self.running) - len(self.held)

    def take_in(self, fact: NodeJobFact) -> bool:
        """Something has happened to one of them; whether it has left the queue."""
        match NodeJobKind(fact.kind):
            case NodeJobKind.STARTED:
                self.held.discard(fact.proc)
                self.running.add(fact.proc)
            case NodeJobKind.EVICTED:
                self.running.discard(fact.proc)
            case NodeJobKind.HELD:
                self.running.discard(fact.proc)
                self.held.add(fact.proc)
            case NodeJobKind.RELEASED:
                self.held.discard(fact.proc)
            case NodeJobKind.UNMADE:
                self.left -= fact.value
            case NodeJobKind.COMPLETED | NodeJobKind.REMOVED:
                self.running.discard(fact.proc)
                self.held.discard(fact.proc)
                self.left -= 1
                return True
            case _:
                pass
        return False
