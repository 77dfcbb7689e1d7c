"""
The table of docs/explanation/performance.md, from what `bench --part table` has printed.

    python -m tests.performance.table NEW.json [OLD.json]

Each row has what is aimed at, the median with the range seen, and with an earlier report also what it was, and the ratio of both;
the calibration of both reports stands below, since a ratio means nothing where that differs as much.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, cast


class Row(NamedTuple):
    """One figure of a report."""

    work: str
    aimed_at: str
    path: str
    """Where it is in the report: the keys, with slashes between them."""
    unit: str = "ms"
    times: float = 1.0
    """What the figure is multiplied with to be of the unit."""


_START: Final = "commands/start"
_LOOP: Final = "commands/loop"
_JOBS: Final = "jobs_per_second"
ROWS: Final[Sequence[Row]] = (
    Row("a bare interpreter", "", f"{_START}/interpreter/seconds", times=1000),
    Row(
        "one-job `condor_submit`, served",
        "20 ms",
        f"{_START}/condor_submit_one_job_served/seconds",
        times=1000,
    ),
    Row("the same, by itself", "", f"{_START}/condor_submit_one_job/seconds", times=1000),
    Row("`condor_q` of one job, served", "20 ms", f"{_START}/condor_q_one_job_served/seconds", times=1000),
    Row("`condor_rm`, served", "20 ms", f"{_START}/condor_rm_served/seconds", times=1000),
    Row("`condor_version`, served", "20 ms", f"{_START}/condor_version_served/seconds", times=1000),
    Row(
        "`condor_submit`, one after the other, served",
        "67/s",
        f"{_LOOP}/callers_1_served/calls_per_second",
        "/s",
    ),
    Row("four at once, served", "118/s", f"{_LOOP}/callers_4_served/calls_per_second", "/s"),
    Row("one after the other, each by itself", "", f"{_LOOP}/callers_1/calls_per_second", "/s"),
    Row("one job by a connected client, p50", "12 ms", "jobs/8_slots/latency/p50_ms"),
    Row("the same, p99", "30 ms", "jobs/8_slots/latency/p99_ms"),
    Row(
        "one job, `condor_submit` started to log says ended, p50",
        "40 ms",
        "commands/ended/seconds",
        times=1000,
    ),
    Row("2,000 x `/bin/true`, 8 slots", "600 jobs/s", f"jobs/8_slots/2000_jobs/{_JOBS}", "jobs/s"),
    Row("the same, 32 slots", "600 jobs/s", f"jobs/32_slots/2000_jobs/{_JOBS}", "jobs/s"),
    Row("20,000 of them, 8 slots", "1,000 jobs/s", f"many_jobs/8_slots/20000_jobs/{_JOBS}", "jobs/s"),
    Row("the same, 32 slots", "1,000 jobs/s", f"many_jobs/32_slots/20000_jobs/{_JOBS}", "jobs/s"),
    Row(
        "with log, input and output file, 8 slots", "400 jobs/s", f"files/8_slots/2000_jobs/{_JOBS}", "jobs/s"
    ),
    Row(
        "calls of a function in a task queue, one worker",
        "10,000/s",
        "tasks/functions_1/tasks_per_second",
        "/s",
    ),
    Row("commands in a task queue, one worker", "", "tasks/commands_1/tasks_per_second", "/s"),
    Row("processor time a job, 2,000 on 8 slots", "", "jobs/8_slots/2000_jobs/processor_ms_per_job"),
    Row(
        "of it the services, 20,000 on 32 slots", "2 ms", "many_jobs/32_slots/20000_jobs/services_ms_per_job"
    ),
    Row(
        "services, a hundred users with 60 jobs each, 32 slots",
        "4 ms",
        "users/32_slots/6000_jobs_of_100_users/services_ms_per_job",
    ),
    Row(
        "one cluster of 10,000, request to answer",
        "",
        "queueing/one_cluster/request_to_answer/seconds",
        times=1000,
    ),
    Row("`hold` of 100,000 jobs", "0.5 s", "queueing/hold/hold/seconds", "s"),
    Row("of it the schedd's processor time", "", "queueing/hold/hold/schedd_cpu_s", "s"),
    Row(
        "`condor_q` of 100,000, three attributes",
        "0.4 s",
        "commands/queue/100000/three_attributes_of_all/seconds",
        "s",
    ),
    Row("its totals", "", "commands/queue/100000/totals/seconds", times=1000),
    Row("one of its jobs", "", "commands/queue/100000/one_job/seconds", times=1000),
    Row("schedd with 100,000 jobs in ten clusters", "60 MiB", "queued/100000_in_10/rss_mib", "MiB"),
    Row("its part, with shared pages divided", "", "queued/100000_in_10/proportional_mib", "MiB"),
    Row("one running job, of 1,000", "2 MiB", "recovery/mib_per_running_job", "MiB"),
    Row("schedd killed, until it answers", "2 s", "recovery/answered_s", "s"),
    Row("farm of 50,400 slots, ends a second", "", "farm/ended_per_second", "/s"),
    Row(
        "farm of 12,600 slots with jobs of a minute, ends a second",
        "840/s of 50,000",
        "busy_farm/ended_per_second",
        "/s",
    ),
    Row("a pool that does nothing", "1 % of a core", "idle/percent_of_a_core", "%"),
    Row("*calibration:* processes started and waited for", "", "calibration/spawns_per_second", "/s"),
    Row("*calibration:* the same, afterwards", "", "calibration_after/spawns_per_second", "/s"),
    Row("*calibration:* 4 KiB written and flushed", "", "calibration/flushes_per_second", "/s"),
    Row("*calibration:* bare loop, turns per microsecond", "", "calibration/loop_turns_per_us", ""),
    Row("*calibration:* load of the last minute", "", "calibration/load_1m", ""),
)


def figure(report: Mapping[str, Any], path: str) -> Any:
    """What a report has at a place; None: that was not measured."""
    found: Any = report
    for key in path.split("/"):
        if not isinstance(found, dict) or key not in found:
            return None
        found = cast("dict[str, Any]", found)[key]
    return found


def median(found: Any) -> float | None:
    """The figure itself, of one with its range or without."""
    value: Any = cast("dict[str, Any]", found).get("median") if isinstance(found, dict) else found
    return float(value) if isinstance(value, int | float) else None


def shown(found: Any, row: Row) -> str:
    """With the range seen, where there were several."""
    value = median(found)
    if value is None:
        return "-"
    text = f"{_number(value * row.times)} {row.unit}".rstrip()
    span = cast("dict[str, Any]", found) if isinstance(found, dict) else {"n": 1}
    if span["n"] > 1:
        text += f" ({_number(span['min'] * row.times)}-{_number(span['max'] * row.times)}, n={span['n']})"
    return text


def _number(value: float) -> str:
    """With as many digits as mean something."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def table(new: Mapping[str, Any], old: Mapping[str, Any] | None = None) -> str:
    """The rows of which at least one report knows something."""
    head = ["work", "aimed at", *(["before"] if old else []), "now", *(["now/before"] if old else [])]
    lines = [head, ["---"] * len(head)]
    for row in ROWS:
        now, before = figure(new, row.path), figure(old, row.path) if old else None
        if now is None and before is None:
            continue
        cells = [row.work, row.aimed_at]
        if old:
            cells.append(shown(before, row))
        cells.append(shown(now, row))
        if old:
            cells.append(_ratio(median(now), median(before)))
        lines.append(cells)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _ratio(now: float | None, before: float | None) -> str:
    return f"{now / before:.2f}" if now is not None and before else "-"


def main() -> int:
    """Print the table of one report, or of two."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("new", type=Path)
    parser.add_argument("old", type=Path, nargs="?")
    arguments = parser.parse_args()
    old = json.loads(arguments.old.read_text()) if arguments.old else None
    print(table(json.loads(arguments.new.read_text()), old), end="")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
