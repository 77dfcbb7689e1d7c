"""Leases of one pool, a clock, and what is to be done about them; a test plays the provider."""

from collections.abc import Callable, Iterable
from typing import Final

from kettle_services.scaler.domain.leases.answers import answered
from kettle_services.scaler.domain.leases.book import Act, Create, Decision
from kettle_services.scaler.domain.leases.lease import Lease
from kettle_services.scaler.domain.leases.machines import heard
from kettle_services.scaler.domain.leases.passing import due, restarted
from kettle_services.scaler.domain.leases.reconciling import listed, looked
from kettle_services.scaler.domain.leases.seen import Seen
from kettle_services.scaler.domain.leases.timers import Timers
from kettle_services.scaler.domain.state import ScalerState
from kettle_wire.commands.provisioner import Created, MachineLooked, MachineRemoved, MachinesFound, Trouble
from kettle_wire.commands.scaler import Phase, Renew
from kettle_wire.events import Event
from kettle_wire.events.lease import LeaseRequested
from kettle_wire.leases import ErrorClass, MachineFound, MachineState
from kettle_wire.worker_pools import Offer

BEGAN: Final = 1_790_000_000.0
OFFER: Final = Offer(name="small", provider="cloud", cpus=2, memory=1000, boot=60.0, template="image-1")


class LeaseLab:
    """A scaler's leases."""

    def __init__(self) -> None:
        self.now = BEGAN
        self.timers = Timers()
        self.state = ScalerState()
        self.book = self.state.book(self.timers)
        self.seen = Seen(self.now)
        self.seen.sound = self.now
        self.events: list[Event] = []
        self.lists()

    def decide(self, decide: Callable[[Decision], None]) -> list[Act]:
        """What a decision comes to, which is recorded."""
        decision = Decision(self.book, self.seen, self.now)
        decide(decision)
        for stream, event in decision.changes:
            self.state.apply(stream, event, self.now)
            self.events.append(event)
        return decision.acts

    def request(self, number: int = 1, offer: Offer = OFFER) -> list[str]:
        """So many machines are planned."""
        first = len(self.events)
        names = [f"crowd-{first}-{ordinal}" for ordinal in range(number)]
        for name in names:
            event = LeaseRequested(
                lease=name, pool="crowd", offer=offer, life=86_400.0, until=self.now + 600.0
            )
            self.state.apply(f"lease/{name}", event, self.now)
            self.events.append(event)
        return names

    def after(self, seconds: float) -> list[Act]:
        """Time passes."""
        self.now += seconds
        return self.decide(due)

    def creates(self, acts: Iterable[Act]) -> list[str]:
        """The leases of which machines are asked for."""
        return [act.order.lease for act in acts if isinstance(act, Create)]

    def made(self, *leases: str) -> None:
        """Their provider has made their machines."""
        for lease in leases:
            self._answer(Created(lease=lease, attempt=self.book.leases[lease].attempt, handle=f"i-{lease}"))

    def _answer(self, created: Created) -> None:
        self.decide(lambda decision: answered(decision, created))

    def refused(self, lease: str, error: ErrorClass | None, words: str = "no") -> None:
        """Their provider has refused."""
        attempt = self.book.leases[lease].attempt
        self._answer(Created(lease=lease, attempt=attempt, trouble=Trouble(error=error, words=words)))

    def unheard(self, lease: str) -> None:
        """Nobody knows what became of a request."""
        self._answer(Created(lease=lease, attempt=self.book.leases[lease].attempt, words="no answer"))

    def lists(self, *machines: MachineFound, complete: bool = True) -> list[Act]:
        """A provider lists its machines."""
        found = MachinesFound(machines=list(machines), complete=complete, visibility=5.0)
        return self.decide(lambda decision: listed(decision, "cloud", found))

    def trouble(self, error: ErrorClass | None) -> list[Act]:
        """A provider cannot be asked."""
        found = MachinesFound(trouble=Trouble(error=error, words="no"))
        return self.decide(lambda decision: listed(decision, "cloud", found))

    def gone(self, handle: str, *, proven: bool = False) -> None:
        """Its provider says that it is gone."""
        machine = MachineFound(handle=handle, state=MachineState.GONE, proven=proven)
        told = MachineLooked(handle=handle, machine=machine)
        self.decide(lambda decision: looked(decision, "cloud", told))

    def removed(self, lease: str, *, console: str = "") -> None:
        """Its provider has been asked to remove it, and still has it."""
        there = MachineFound(handle=f"i-{lease}", state=MachineState.STOPPING)
        told = MachineRemoved(handle=there.handle, machine=there, console=console)
        self.decide(lambda decision: looked(decision, "cloud", told))

    def says(self, lease: str, phase: Phase, progress: str = "", *, claims: int = 0) -> None:
        """A machine speaks."""
        said = Renew(phase=phase, progress=progress, age=1.0, claims=claims)
        self.decide(lambda decision: heard(decision, lease, said))

    def start_again(self) -> None:
        """Another process goes on with what is recorded."""
        self.seen = Seen(self.now)
        self.seen.sound = self.now
        self.decide(restarted)

    def ready(self, number: int) -> list[str]:
        """So many machines are there and take jobs."""
        proven = self.request()
        self.creates(self.after(1.0))
        self.made(*proven)
        self.says(proven[0], Phase.READY)
        more = self.request(number - 1)
        self.after(1.0)
        self.made(*more)
        for lease in more:
            self.says(lease, Phase.READY)
        return [*proven, *more]

    def lease(self, name: str) -> Lease:
        """One that is not over."""
        return self.book.leases[name]


def machine(lease: str, handle: str = "", state: MachineState = MachineState.RUNNING) -> MachineFound:
    """A machine as its provider lists it."""
    return MachineFound(handle=handle or f"i-{lease}", state=state, lease=lease, deployment="here")
