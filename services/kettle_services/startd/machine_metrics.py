"""What a startd measures of its machine."""

from kettle.runtime import Telemetry
from kettle_services.startd.domain.state.machine import Machine
from kettle_wire.telemetry import pool_metrics as metrics


def measure_machine(telemetry: Telemetry, machine: Machine) -> None:
    """Have claims, cores and draining looked at whenever somebody asks."""

    def claims() -> dict[tuple[str, ...], float]:
        busy = sum(claim.attempt is not None for claim in machine.claims.values())
        return {("busy",): busy, ("idle",): len(machine.claims) - busy}

    def cpus() -> dict[tuple[str, ...], float]:
        claimed = sum(claim.resources.cpus for claim in machine.shared)
        total = sum(slot.total.cpus for slot in machine.facts.slots)
        return {("claimed",): claimed, ("free",): max(0, total - claimed)}

    telemetry.observe(metrics.STARTD_CLAIMS, claims)
    telemetry.observe(metrics.STARTD_CPUS, cpus)
    telemetry.observe(metrics.STARTD_DRAINING, lambda: machine.draining)
