"""Machines of leases say how they are, and are told whether they go on."""

from typing import Final

from kettle.bus.ports import RefusedError
from kettle.eventsourcing.command_pipeline import Decision
from kettle_services.scaler.domain.leases.lease import Lease
from kettle_services.scaler.domain.leases.machines import heard
from kettle_services.scaler.provisioning import Provisioning
from kettle_services.scaler.settings import ScalerSettings
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.scaler import Renew, Renewed
from kettle_wire.identity import Identity
from kettle_wire.leases import LeaseState

_ENDS: Final = frozenset({LeaseState.TERMINATING, LeaseState.LOST})
_UNNAMED_S: Final = 2.0
"""What a machine says before its provider's name for it is known does not count: it is to say it again so soon."""


class Renewals:
    """Answers machines."""

    def __init__(self, provisioning: Provisioning, settings: ScalerSettings) -> None:
        self._provisioning = provisioning
        self._settings = settings

    async def renew(self, request: Renew, caller: Identity) -> Decision[Renewed]:
        """One machine, whose name is that of its lease."""
        name = caller.name
        if name not in self._provisioning.book.leases:
            raise RefusedError(RefusalCode.NOT_FOUND, f"there is no lease {name}, or it is over")
        decision = self._provisioning.decision()
        heard(decision, name, request)
        now, acts = decision.now, decision.acts
        return Decision(
            lambda _position: self._renewed(self._provisioning.book.leases.get(name), now),
            decision.changes,
            effect=lambda: self._provisioning.act(acts),
        )

    def _renewed(self, lease: Lease | None, now: float) -> Renewed:
        again = next_renewal(lease, self._settings.renew_interval)
        if lease is None or lease.state in _ENDS:
            words = lease.words if lease is not None else "its lease is over"
            return Renewed(order="stop", words=words, life=0.0, again=again, now=now)
        life = max(0.0, (lease.ends or now + lease.requested.life) - now)
        if lease.state is LeaseState.DRAINING:
            within = max(0.001, lease.until - now)
            return Renewed(order="drain", within=within, words=lease.words, life=life, again=again, now=now)
        return Renewed(life=life, again=again, now=now)


def next_renewal(lease: Lease | None, interval: float) -> float:
    """In how many seconds a machine is to say again how it is."""
    return interval if lease is None or lease.handle else min(interval, _UNNAMED_S)
