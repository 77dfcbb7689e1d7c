"""What is expected of an analysis facility, beside what `tests.performance.facility` has measured of it."""

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec


class FacilityBar(msgspec.Struct, frozen=True):
    """One figure, and what it has to be at most or at least."""

    row: str
    figure: tuple[str, ...]
    """Where it is in the report."""
    bound: Literal["at most", "at least"]
    bar: float


BARS: Final = (
    FacilityBar("a cluster with 4 workers on a warm pool, s", ("dask", "begin_4_s"), "at most", 3.0),
    FacilityBar("from 4 workers to 50, s", ("dask", "scale_50_s"), "at most", 15.0),
    FacilityBar(
        "the same, as a part of what dask-jobqueue takes on the same pool",
        ("dask", "scale_50_of_jobqueue"),
        "at most",
        1.0,
    ),
    FacilityBar("one TCP stream through the gateway, MB/s", ("stream_mb_per_s",), "at least", 400.0),
    FacilityBar("what the gateway adds to an answer, p50, ms", ("added_p50_ms",), "at most", 1.0),
    FacilityBar(
        "what 1,000 idle connections add to the gateway, MiB",
        ("connections", "mib_added_idle"),
        "at most",
        100.0,
    ),
    FacilityBar("from the click to the kernel of a notebook, s", ("notebook", "kernel_s"), "at most", 8.0),
    FacilityBar(
        "from the death of a worker to another one, s", ("dask", "worker_replaced_s"), "at most", 5.0
    ),
    FacilityBar(
        "until the death of a scheduler is said, s", ("dask", "scheduler_loss_seen_s"), "at most", 2.0
    ),
    FacilityBar("until another one has its workers, s", ("dask", "scheduler_replaced_s"), "at most", 30.0),
    FacilityBar("from the death of the gateway to a service, s", ("gateway_back_s",), "at most", 30.0),
    FacilityBar(
        "first worker of a session on a full pool with a reserve, s", ("dask", "reserve_s"), "at most", 10.0
    ),
    FacilityBar(
        "rate of a histogram, as a part of that of Dask's own cluster on the same cores",
        ("dask", "histogram_of_local"),
        "at least",
        0.9,
    ),
)


def beside(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """
    Each bar with the median that was measured and whether that is enough; `measured`: None where the run had no such part.
    """
    rows: list[dict[str, Any]] = []
    for each in BARS:
        found: Any = report
        for name in each.figure:
            found = found[name] if hasattr(found, "keys") and name in found else None
        value: float | None = found["median"] if hasattr(found, "keys") else found
        met: bool | None = None
        if value is not None:
            met = value <= each.bar if each.bound == "at most" else value >= each.bar
        rows.append({"row": each.row, "bound": each.bound, "bar": each.bar, "measured": value, "met": met})
    return rows
