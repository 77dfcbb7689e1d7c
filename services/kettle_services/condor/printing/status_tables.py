"""The tables of condor_status, as print formats, and the sums below them."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from kettle_services.condor.printing.values import number
from kettle_wire.ads.types import Ad

Sums = Callable[[Sequence[Ad]], Iterator[str]]

_KEY: Final = 20
"""Characters of the names of sums."""
_STATES: Final = ("Owner", "Claimed", "Unclaimed", "Matched", "Preempting", "Drained", "Backfill")
_UNROLLED: Final = "PartitionableSlot =?= true || DynamicSlot =!= true"

_SLOT: Final = """\
   Name     FIT LEFT OR ?
   OpSys    WIDTH -10 OR ??
   Arch     WIDTH -8 OR ??
"""
_MACHINE: Final = """\
   Machine
   OpSys          AS Platform PRINTAS PLATFORM OR ?
   NumDynamicSlots AS Slot    PRINTF %4d OR ' '
   SlotType       AS s        NOPREFIX PRINTAS SLOT_COUNT_TAG OR ' '
"""
_SIZE: Final = """\
   TotalSlotCpus  AS Cpus     PRINTF %4d
   TotalSlotGPUs  AS Gpus     PRINTF %4d OR ' '
   TotalSlotMemory/1024.0 AS ' TotalGb' PRINTF %8.2f
"""
_ROLLED: Final = f"WHERE {_UNROLLED}\nGROUP BY Machine\nSUMMARY STANDARD\n"


class Table(NamedTuple):
    """One table."""

    layout: str
    sums: Sums | None = None


# -- what stands below ---------------------------------------------------------------------------------------------------


def _by(key: Callable[[Ad], str], titles: str, line: Callable[[Sequence[Ad]], str]) -> Sums:
    """Sums for each key, and for all."""

    def sums(ads: Sequence[Ad]) -> Iterator[str]:
        grouped: dict[str, list[Ad]] = {}
        for ad in ads:
            grouped.setdefault(key(ad), []).append(ad)
        yield f"\n{'':{_KEY}}{titles}\n\n"
        for name in sorted(grouped):
            yield f"{name[:_KEY]:>{_KEY}}{line(grouped[name])}\n"
        yield f"\n{'Total':>{_KEY}}{line(ads)}\n"

    return sums


def _platform(ad: Ad) -> str:
    return f"{ad.get('Arch', '?')}/{ad.get('OpSys', '?')}"


def _states(ads: Iterable[Ad], order: Sequence[str]) -> tuple[int, ...]:
    counts = Counter(str(ad.get("State", "")) for ad in ads)
    return (counts.total(), *(counts[state] for state in order))


def _sum(ads: Iterable[Ad], name: str) -> float:
    return sum(number(ad, name) for ad in ads)


def _slot_line(ads: Sequence[Ad]) -> str:
    return " ".join(
        f"{value:{width}}"
        for value, width in zip(_states(ads, _STATES), (6, 5, 7, 9, 7, 10, 6, 8), strict=True)
    )


_BY_ACTIVITY: Final = ("Owner", "Unclaimed", "Claimed", "Preempting", "Matched", "Drained", "Backfill")


def _state_line(ads: Sequence[Ad]) -> str:
    return " ".join(
        f"{value:{width}}"
        for value, width in zip(_states(ads, _BY_ACTIVITY), (6, 5, 9, 7, 10, 7, 6, 8), strict=True)
    )


def _server_line(ads: Sequence[Ad]) -> str:
    usable = sum(ad.get("State") in {"Claimed", "Unclaimed"} for ad in ads)
    figures = (len(ads), usable, *(_sum(ads, name) for name in ("Memory", "Disk", "Mips", "KFlops")))
    return " ".join(
        f"{value:{width}.0f}" for value, width in zip(figures, (9, 5, 11, 11, 11, 11), strict=True)
    )


def _run_line(ads: Sequence[Ad]) -> str:
    load = _sum(ads, "LoadAvg") / len(ads) if ads else 0.0
    return f"{len(ads):9}  {_sum(ads, 'Mips'):11.0f}  {_sum(ads, 'KFlops'):11.0f}  {load:11.3f}"


def _jobs_line(ads: Sequence[Ad]) -> str:
    names = ("RunningJobs", "IdleJobs", "HeldJobs")
    return " ".join(f"{_sum(ads, name):{width}.0f}" for name, width in zip(names, (11, 10, 10), strict=True))


def _schedd_sums(ads: Sequence[Ad]) -> Iterator[str]:
    names = ("TotalRunningJobs", "TotalIdleJobs", "TotalHeldJobs")
    yield f"\n{'':{_KEY}}" + " ".join(f"{name:>18}" for name in names) + "\n\n"
    yield f"{'Total':>{_KEY}}" + " ".join(f"{_sum(ads, name):18.0f}" for name in names) + "\n"


_SLOT_SUMS: Final = _by(
    _platform, " Total Owner Claimed Unclaimed Matched Preempting  Drain Backfill", _slot_line
)
_STATE_SUMS: Final = _by(
    lambda ad: str(ad.get("Activity", "?")),
    " Total Owner Unclaimed Claimed Preempting Matched  Drain Backfill",
    _state_line,
)
_SERVER_SUMS: Final = _by(
    _platform, "    Slots Avail      Memory        Disk        MIPS      KFLOPS", _server_line
)
_RUN_SUMS: Final = _by(_platform, " Machines         MIPS       KFLOPS   AvgLoadAvg", _run_line)
_SUBMITTER_SUMS: Final = _by(
    lambda ad: str(ad.get("Name", "?")), "RunningJobs   IdleJobs   HeldJobs", _jobs_line
)

# -- the tables ----------------------------------------------------------------------------------------------------------

TABLES: Final = {
    "startd": Table(
        f"""SELECT
{_SLOT}   State    OR ?
   Activity WIDTH -8 OR ??
   LoadAvg  AS LoadAv WIDTH 6 TRUNCATE PRINTAS LOAD_AVG OR ??
   Memory   AS Mem    WIDTH 6 PRINTF %6d OR ??
   EnteredCurrentActivity AS '  ActvtyTime' WIDTH 12 NOPREFIX PRINTAS ACTIVITY_TIME OR ??
GROUP BY
   Machine
   Name
SUMMARY STANDARD
""",
        _SLOT_SUMS,
    ),
    "startd compact": Table(
        f"""SELECT
{_MACHINE}{_SIZE}   Cpus           AS FreCpu   PRINTF %6d
   Memory/1024.0  AS ' FreeGb ' PRINTF %8.2f
   TotalLoadAvg*1.0/TotalCpus AS CpuLoad PRINTF %7.2f OR _
   Activity       AS ST       WIDTH 2 PRINTAS ACTIVITY_CODE
   Max(ChildMemory)/1024.0 AS MaxSlotGb PRINTF %9.2f OR *
{_ROLLED}""",
        _SLOT_SUMS,
    ),
    "run": Table(
        f"""SELECT
{_SLOT}   LoadAvg      AS LoadAv WIDTH 6 TRUNCATE PRINTAS LOAD_AVG OR ??
   RemoteUser    WIDTH -20 OR ??
   ClientMachine WIDTH -16 OR ??
WHERE State == "Claimed"
GROUP BY
   Machine
   Name
SUMMARY STANDARD
""",
        _RUN_SUMS,
    ),
    "run compact": Table(
        f"""SELECT
{_MACHINE}   ChildRemoteUser AS Users PRINTAS UNIQUE
WHERE (State == "Claimed" && DynamicSlot =!= true) || (NumDynamicSlots ?: 0) > 0
GROUP BY Machine
SUMMARY STANDARD
""",
        _RUN_SUMS,
    ),
    "server": Table(
        f"""SELECT
{_SLOT}   LoadAvg  AS LoadAv WIDTH 6 TRUNCATE PRINTAS LOAD_AVG OR ??
   Memory   WIDTH 8 PRINTF %8d OR ??
   Disk     WIDTH 9 PRINTF %9d OR ??
   Mips     WIDTH 7 PRINTF %7d OR ??
   KFlops   WIDTH 9 PRINTF %9d OR ??
GROUP BY
   Machine
   Name
SUMMARY STANDARD
""",
        _SERVER_SUMS,
    ),
    "server compact": Table(
        f"SELECT\n{_MACHINE}{_SIZE}   Disk PRINTF %9d\n   Activity AS ST WIDTH 2 PRINTAS ACTIVITY_CODE\n{_ROLLED}",
        _SERVER_SUMS,
    ),
    "state": Table(
        """SELECT
   Name     FIT LEFT OR ?
   Cpus     AS Cpu OR ?
   Memory   AS ' Mem' WIDTH 5 OR ??
   LoadAvg  AS LoadAv WIDTH 6 TRUNCATE PRINTAS LOAD_AVG OR ??
   KeyboardIdle AS '  KbdIdle' WIDTH 12 PRINTAS TIME OR ??
   State    OR ?
   EnteredCurrentState AS '  StateTime' WIDTH 12 PRINTAS ELAPSED_TIME OR ??
   Activity AS Activ OR ?
   EnteredCurrentActivity AS '  ActvtyTime' WIDTH 12 PRINTAS ELAPSED_TIME OR -
GROUP BY
   Machine
   Name
SUMMARY STANDARD
""",
        _STATE_SUMS,
    ),
    "state compact": Table(
        f"SELECT\n{_MACHINE}{_SIZE}   Activity AS ST WIDTH 2 PRINTAS ACTIVITY_CODE\n{_ROLLED}", _STATE_SUMS
    ),
    "gpus": Table(
        """SELECT
   Name     FIT LEFT OR ?
   Activity AS ST WIDTH 2 PRINTAS ACTIVITY_CODE
   RemoteUser AS User OR _
   GPUs     PRINTF %4d
   GPUs_GlobalMemoryMB AS GPU-Memory PRINTAS READABLE_MB OR _
   GPUs_DeviceName AS GPU-Name OR *
WHERE (GPUs ?: 0) > 0 || (TotalSlotGPUs ?: 0) > 0
GROUP BY
   Machine
   Name
SUMMARY STANDARD
""",
        _SLOT_SUMS,
    ),
    "absent": Table(
        f"""SELECT
{_SLOT}   LastHeardFrom   AS 'Went Absent' WIDTH -11 PRINTAS DATE OR ??
   ClassAdLifetime AS 'Will Forget' WIDTH -11 PRINTAS DUE_DATE OR ??
SUMMARY STANDARD
"""
    ),
    "startds": Table(
        """SELECT
   Name
   CondorVersion AS Version PRINTAS CONDOR_VERSION OR ?
   DetectedCpus  AS Cpus WIDTH 4 PRINTF %4d OR ??
   DetectedMemory AS '  Memory' WIDTH 10 PRINTAS READABLE_MB OR ??
   DaemonStartTime AS '   Uptime' WIDTH 13 PRINTAS ELAPSED_TIME
"""
    ),
    "schedd": Table(
        """SELECT
   Name
   Machine OR ?
   TotalRunningJobs AS RunningJobs  PRINTF %11d
   TotalIdleJobs    AS '  IdleJobs' PRINTF %10d
   TotalHeldJobs    AS '  HeldJobs' PRINTF %10d
SUMMARY STANDARD
""",
        _schedd_sums,
    ),
    "submitters": Table(
        """SELECT
   Name
   (Machine ?: ScheddName) AS Machine OR ?
   RunningJobs PRINTF %11d
   IdleJobs    AS '  IdleJobs' PRINTF %10d
   HeldJobs    AS '  HeldJobs' PRINTF %10d
SUMMARY STANDARD
""",
        _SUBMITTER_SUMS,
    ),
    "collector": Table(
        """SELECT
   Name
   Machine OR ?
   RunningJobs PRINTF %11d OR ' '
   IdleJobs    AS '  IdleJobs' PRINTF %10d OR ' '
   HostsTotal  PRINTF %10d OR ' '
"""
    ),
    "master": Table(
        """SELECT
   Name
   CondorVersion  AS Version WIDTH -14 PRINTAS CONDOR_VERSION OR ?
   DetectedCpus   AS Cpus WIDTH 4 PRINTF %4d OR ??
   DetectedMemory AS '  Memory' WIDTH 10 PRINTAS READABLE_MB OR ??
   DaemonStartTime AS '   Uptime' WIDTH 13 PRINTAS ELAPSED_TIME OR ??
"""
    ),
    "negotiator": Table(
        """SELECT
   Name
   LastNegotiationCycleEnd0 AS LastCycleEnd WIDTH 12 PRINTAS DATE OR _
   LastNegotiationCycleDuration0 AS (Sec) PRINTF %5d OR _
   LastNegotiationCycleCandidateSlots0 AS '  Slots' PRINTF %7d OR _
   LastNegotiationCycleActiveSubmitterCount0 AS Submitrs PRINTF %8d OR _
   LastNegotiationCycleNumSchedulers0 AS Schedds PRINTF %7d OR _
   LastNegotiationCycleNumIdleJobs0 AS '   Jobs' PRINTF %7d OR _
   LastNegotiationCycleMatches0 AS Matches PRINTF %7d OR _
   LastNegotiationCycleRejections0 AS Rejections PRINTF %10d OR _
"""
    ),
    "defrag": Table(
        """SELECT
   Name
   MachinesDraining AS Draining PRINTF %8d OR _
   MachinesDrainingPeak AS '    Peak' PRINTF %8d OR _
   DrainedMachines AS TotalDrained PRINTF %12d OR _
"""
    ),
    "any": Table("SELECT\n   MyType\n   Name OR ?\n"),
}  # fmt: skip
"""By what was asked for; `compact` has a line for each machine, from the slots that others are carved from."""
