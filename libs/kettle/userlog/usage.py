"""What an attempt used, asked for and was given, as log events show it. Pure."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from kettle.userlog.events import CpuTimes, Resource
from kettle_wire.ads.types import Ad, Expr, Scalar
from kettle_wire.attempts import Usage

_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(dict[str, Scalar])


class Allocation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the slot of a claim has."""

    cpus: int | float | None = None
    disk: int | None = None
    """KiB."""
    memory: int | None = None
    """MiB."""
    address: str = ""
    said: bytes = b""
    """What its ad says literally, encoded: of thousands of slots, and few are ever asked."""

    @classmethod
    def from_ad(cls, slot_ad: Ad) -> "Allocation":
        """Read it from the ad of the slot as the claim was granted."""
        ad = {name.lower(): value for name, value in slot_ad.items()}
        address = ad.get("myaddress")
        return cls(
            cpus=_number(ad.get("cpus")),
            disk=_whole(ad.get("disk")),
            memory=_whole(ad.get("memory")),
            address=address.strip("<>") if isinstance(address, str) else "",
            said=_encoder.encode({n: v for n, v in slot_ad.items() if not isinstance(v, Expr)}),
        )

    def asked(self, names: Sequence[str]) -> list[tuple[str, Scalar]]:
        """Those attributes of the slot that have a literal value, under the slot's names."""
        if not names:
            return []
        known = {name.lower(): (name, value) for name, value in _decoder.decode(self.said or b"\x80").items()}
        return [known[name.lower()] for name in names if name.lower() in known]

    def attributes(self) -> list[tuple[str, int | float | None]]:
        """In the order of event 001."""
        return [("Cpus", self.cpus), ("Disk", self.disk), ("Memory", self.memory)]


def table(
    ad: Mapping[str, Scalar], allocation: Allocation, usage: Usage, *, execute: float = 0.0
) -> list[Resource]:
    """The table of resources; `execute` is how many seconds the executable ran, 0 if that is unknown."""
    cpus = f"{(usage.user_cpu + usage.system_cpu) / usage.wall:.2f}" if usage.wall else ""
    rows = [
        _row("Cpus", cpus, ad.get("RequestCpus"), allocation.cpus),
        _row("Disk (KB)", _measured(usage.disk_kib), ad.get("RequestDisk"), allocation.disk),
        _row(
            "Memory (MB)", _measured(-(-usage.memory_kib // 1024)), ad.get("RequestMemory"), allocation.memory
        ),
    ]
    if execute > 0:
        rows.append(Resource(label="TimeExecute (s)", usage=str(int(execute))))
    if usage.wall:
        rows.append(Resource(label="TimeSlotBusy (s)", usage=str(int(usage.wall))))
    return rows


def cpu_times(usage: Usage) -> CpuTimes:
    """Whole seconds, as the log has them."""
    return CpuTimes(int(usage.user_cpu), int(usage.system_cpu))


def plus(a: Usage, b: Usage) -> Usage:
    """What two attempts used together; peaks are of one attempt and are left out."""
    return Usage(
        wall=a.wall + b.wall,
        user_cpu=a.user_cpu + b.user_cpu,
        system_cpu=a.system_cpu + b.system_cpu,
        sent=a.sent + b.sent,
        received=a.received + b.received,
    )


def _row(label: str, used: str, requested: Scalar | None, allocated: float | None) -> Resource:
    request = _number(requested)
    # A request that is an expression was evaluated by the startd: what it gave is what was asked for.
    return Resource(
        label=label,
        usage=used,
        request=_shown(allocated if request is None else request),
        allocated=_shown(allocated),
    )


def _shown(value: float | None) -> str:
    if value is None:
        return ""
    return str(int(value)) if value == int(value) else f"{value:.2f}"


def _measured(value: int) -> str:
    return str(value) if value else ""


def _number(value: Scalar | None) -> int | float | None:
    return None if isinstance(value, bool) or not isinstance(value, int | float) else value


def _whole(value: Scalar | None) -> int | None:
    number = _number(value)
    return None if number is None else int(number)
