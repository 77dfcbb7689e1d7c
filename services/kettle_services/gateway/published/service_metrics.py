"""What goes through this gateway to services of jobs, in numbers."""

from collections import Counter
from typing import Final, get_args

from kettle.runtime import Telemetry
from kettle_services.gateway.published.service_access import ServiceAccess, Unserved
from kettle_services.gateway.published.tunnels import Tunnels
from kettle_services.gateway.published.uses import Use, Uses, Via
from kettle_wire.telemetry import gateway_metrics as metrics

_VIAS: Final[tuple[Via, ...]] = get_args(Via)


def measure_services(telemetry: Telemetry, tunnels: Tunnels, uses: Uses, access: ServiceAccess) -> None:
    """Have it counted, besides what others do when a use ends or somebody is refused."""
    carried = telemetry.counter(metrics.SERVICE_BYTES)
    refusals = telemetry.counter(metrics.SERVICE_REFUSALS)
    ended, refused = uses.ended, access.refused

    def count(use: Use) -> None:
        sent, received = use.bytes
        carried.add(sent, "to_job")
        carried.add(received, "from_job")
        ended(use)

    def count_refusal(unserved: Unserved) -> None:
        if not unserved.because:
            refusals.add(1)
        refused(unserved)

    def connections() -> dict[tuple[str, ...], float]:
        open_now = Counter(use.via for use in uses)
        return {(via,): float(open_now[via]) for via in _VIAS}

    uses.ended, access.refused = count, count_refusal
    telemetry.observe(metrics.TUNNELS, lambda: {(): float(len(tunnels))})
    telemetry.observe(metrics.SERVICE_CONNECTIONS, connections)
