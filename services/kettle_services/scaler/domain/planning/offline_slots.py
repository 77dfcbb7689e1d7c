"""The slots of a machine that sleeps, as they are seen meanwhile (offline ads)."""

from kettle_services.scaler.domain.hosts.census import Member
from kettle_services.scaler.domain.planning.templates import as_free, slot_ad, start_of
from kettle_wire.ads.types import Ad, Expr
from kettle_wire.worker_pools import HostState

_UNHIBERNATE = Expr("MY.MachineLastMatchTime =!= undefined")
_LIFE_S = 2.0**31


def offline_slots(member: Member) -> list[Ad]:
    """The ads of its slots, with HTCondor's attributes for such machines; none, if it is awake."""
    host = member.host
    if host.state not in {HostState.ASLEEP, HostState.WAKING, HostState.BROKEN}:
        return []
    slots = host.slots or [
        slot_ad(
            member.name,
            member.pool,
            member.offer,
            life=_LIFE_S,
            start=start_of(member.pool, member.offer),
        )
    ]
    level = host.level if host.slots else member.pool.hibernate
    said: Ad = {
        "Offline": True,
        "HibernationLevel": level.level,
        "HibernationState": level.value,
        "Unhibernate": _UNHIBERNATE,
        "KettlePower": host.state.value,
        "KettlePowerSince": int(host.since),
        **({"KettlePowerDeadline": int(host.until)} if host.until else {}),
        **({"KettlePowerReason": host.words} if host.words else {}),
        **({"HardwareAddress": member.machine.mac} if member.machine.mac else {}),
        **({"MachineLastMatchTime": int(host.since)} if host.state is HostState.WAKING else {}),
    }
    return [{**as_free(ad), **said} for ad in slots]
