"""What quotas of a namespace leave."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kettle_services.provisioner.port import Room

_FACTORS: Final[Mapping[str, float]] = {
    "n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50, "Ei": 2.0**60,
}  # fmt: skip
_MIB: Final = 2.0**20
_PODS: Final = frozenset({"pods", "count/pods"})
_CPUS: Final = frozenset({"cpu", "requests.cpu", "limits.cpu"})
_MEMORY: Final = frozenset({"memory", "requests.memory", "limits.memory"})


def quantity(text: str) -> float:
    """
    A quantity as Kubernetes writes it, such as `1500m`, `2Gi` or `1e3`.

    Raises:
        ValueError: it is none.
    """
    suffix = next(
        (each for each in sorted(_FACTORS, key=len, reverse=True) if each and text.endswith(each)), ""
    )
    return float(text.removesuffix(suffix)) * _FACTORS[suffix]


def room(quotas: Iterable[Mapping[str, Any]]) -> Room:
    """
    What the strictest of the quotas leaves; those that hold for a part of the pods only are passed over, and so is what cannot be read.
    """
    left = list(_left(quotas))

    def least(names: frozenset[str], unit: float) -> int | None:
        found = [amount / unit for name, amount in left if name in names]
        return max(0, math.floor(min(found))) if found else None

    return Room(machines=least(_PODS, 1.0), cpus=least(_CPUS, 1.0), memory=least(_MEMORY, _MIB))


def _left(quotas: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, float]]:
    for quota in quotas:
        spec: dict[str, Any] = quota.get("spec") or {}
        status: dict[str, Any] = quota.get("status") or {}
        if spec.get("scopes") or spec.get("scopeSelector"):
            continue
        used: dict[str, Any] = status.get("used") or {}
        hards: dict[str, Any] = status.get("hard") or {}
        for name, hard in hards.items():
            try:
                yield name, quantity(str(hard)) - quantity(str(used.get(name, "0")))
            except ValueError:
                continue
