"""
What `PRINTAS` of a print format names: functions that write a value, and other attributes of the ad with it, for people.
"""

import time
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, cast

from kettle_services.condor.errors import ToolError, do_you_mean
from kettle_services.condor.printing.queue_table import moment, ran, run_time
from kettle_services.condor.printing.values import AdRow, number, written

Written = str | None
"""None: there is nothing to write."""


class PrintFunction(NamedTuple):
    """A function, and the attributes that it reads beside its own."""

    write: Callable[[Any, AdRow], Written]
    needs: tuple[str, ...] = ()
    always: bool = False
    """Whether it is asked where its own attribute has no value, too."""


def function_named(name: str) -> PrintFunction:
    """The function of that name; raises ToolError."""
    found = FUNCTIONS.get(name)
    if found is None:
        raise ToolError(f"PRINTAS knows no function '{name}'{do_you_mean(name.upper(), FUNCTIONS)}")
    return found


def _figure(write: Callable[[float], str]) -> Callable[[Any, AdRow], Written]:
    """A function of a number alone."""

    def written_figure(value: Any, _row: AdRow) -> Written:
        return write(value) if isinstance(value, int | float) and value - value == 0 else None

    return written_figure


def _table(names: dict[int, str], other: str) -> Callable[[Any, AdRow], Written]:
    """A function of a code."""
    return _figure(lambda value: names.get(int(value), other))


def _text(row: AdRow, name: str) -> str:
    value = row.value(name)
    return value if isinstance(value, str) else ""


def readable(units_of: float) -> Callable[[float], str]:
    """Bytes in the largest unit that leaves a figure before the point; the value is in so many bytes."""

    def bytes_text(value: float) -> str:
        size = value * units_of
        units = ("B ", "KB", "MB", "GB", "TB", "PB")
        step = 0
        while size >= 1024 and step < len(units) - 1:
            size, step = size / 1024, step + 1
        return f"{size:.1f} {units[step]}"

    return bytes_text


# -- jobs ----------------------------------------------------------------------------------------------------------------

_STATUS: Final = {1: "I", 2: "R", 3: "X", 4: "C", 5: "H", 6: ">", 7: "S"}
_STATUS_WORDS: Final = {
    1: "Idle   ", 2: "Running", 3: "Removed", 4: "Complet", 5: "Held   ", 6: "XFerOut", 7: "Suspend",
}  # fmt: skip
_UNIVERSES: Final = {
    5: "Vanilla",
    7: "Scheduler",
    9: "Grid",
    10: "Java",
    11: "Parallel",
    12: "Local",
    13: "VM",
}
_MODES: Final = {-1: "Errs", 0: "Norm", 1: "Held", 2: "Done", 3: "Gone"}


def _batch_name(_value: Any, row: AdRow) -> Written:
    if name := _text(row, "JobBatchName"):
        return name
    return f"NODE: {node}" if (node := _text(row, "DAGNodeName")) else None


def _job_id(value: Any, row: AdRow) -> Written:
    return f"{value}.{row.text('ProcId')}" if isinstance(value, int) else _text(row, "JobId") or None


def _status(value: Any, row: AdRow) -> Written:
    if not isinstance(value, int):
        return None
    queued = "q" if row.value("TransferQueued") is True else " "
    if row.value("TransferringInput") is True:
        return f"<{queued}"
    if row.value("TransferringOutput") is True or _STATUS.get(value) == ">":
        return f"{queued}>"
    return _STATUS.get(value, " ") + " "


def _memory_usage(_value: Any, row: AdRow) -> Written:
    memory, image = row.value("MemoryUsage"), row.value("ImageSize")
    if isinstance(memory, int | float):
        return f"{memory:.1f}"
    return f"{image / 1024:.1f}" if isinstance(image, int | float) else None


def _described(value: Any, row: AdRow) -> Written:
    from kettle_services.condor.printing.queue_table import command_line

    if description := _text(row, "JobDescription"):
        return f"({description})"
    return command_line(row.ad) if isinstance(value, str) else None


def _command(value: Any, row: AdRow) -> Written:
    from kettle_services.condor.printing.queue_table import arguments

    return f"{value} {arguments(row.ad)}".rstrip() if isinstance(value, str) else None


def _cpu_time(_value: Any, row: AdRow) -> Written:
    """Wall-clock time in spite of its name, as in HTCondor: RUN_TIME of the usual table."""
    return run_time(ran(row.ad, time.time()))


def _cpu_util(_value: Any, row: AdRow) -> Written:
    committed = number(row.ad, "CommittedTime")
    return f"{number(row.ad, 'RemoteUserCpu') / committed:.1f}" if committed > 0 else None


def _grid_job(value: Any, _row: AdRow) -> Written:
    return value.rpartition(" ")[2].rpartition("://")[2] if isinstance(value, str) else None


def _grid_resource(value: Any, _row: AdRow) -> Written:
    if not isinstance(value, str):
        return None
    kind, _, rest = value.partition(" ")
    host, _, manager = rest.partition(" ")
    address = host.rpartition("://")[2].partition("/")[0].partition(":")[0]
    return f"{kind}->{manager.replace(' ', '/') or '[?]'} {address or '[???]'}"


def _transfers(_value: Any, row: AdRow) -> Written:
    kinds = {"TransferringInput": "in", "TransferringOutput": "out", "TransferQueued": "queued"}
    said = [word for name, word in kinds.items() if row.value(name) is True]
    return f" transfer={','.join(said)}" if said else ""


# -- machines and daemons ------------------------------------------------------------------------------------------------

_STATES: Final = {
    "None": "~", "Owner": "O", "Unclaimed": "U", "Matched": "M", "Claimed": "C", "Preempting": "P", "Shutdown": "S",
    "Delete": "X", "Backfill": "F", "Drained": "D",
}  # fmt: skip
_ACTIVITIES: Final = {
    "None": "0", "Idle": "i", "Busy": "b", "Retiring": "r", "Vacating": "v", "Suspended": "s", "Benchmarking": "e",
    "Killing": "k",
}  # fmt: skip


def _activity_code(_value: Any, row: AdRow) -> Written:
    state, activity = _text(row, "State"), _text(row, "Activity")
    return f"{_STATES.get(state, '#')}{_ACTIVITIES.get(activity, '#')}"


def _heard(row: AdRow) -> float:
    return number(row.ad, "MyCurrentTime") or number(row.ad, "LastHeardFrom") or time.time()


def _elapsed(value: Any, row: AdRow) -> Written:
    return run_time(_heard(row) - value) if isinstance(value, int | float) and value else None


def _due(value: Any, row: AdRow) -> Written:
    return moment(_heard(row) + value) if isinstance(value, int | float) else None


def _platform(value: Any, row: AdRow) -> Written:
    system = _text(row, "OpSysAndVer") or (value if isinstance(value, str) else "")
    arch = {"X86_64": "x64", "X86": "x86"}.get(_text(row, "Arch"), _text(row, "Arch"))
    return f"{arch}/{system}" if system else None


def _version(value: Any, _row: AdRow) -> Written:
    if not isinstance(value, str):
        return None
    words = value.strip("$ ").split()
    return words[1] if len(words) > 1 else value


def _condor_platform(value: Any, _row: AdRow) -> Written:
    return value.strip("$ ").partition(" ")[2] if isinstance(value, str) else None


def _slot_letter(value: Any, _row: AdRow) -> Written:
    return {"Partitionable": "p", "Dynamic": "d", "Static": "s"}.get(value, " ") if value else None


def _members(value: Any) -> list[str]:
    """The members of a list of the language, or of a text with commas."""
    if isinstance(value, str):
        return [each.strip() for each in value.split(",") if each.strip()]
    if isinstance(value, Iterable):
        members = cast("Iterable[object]", value)
        return [each if isinstance(each, str) else written(each) for each in members]
    return [] if value is None else [written(value)]


def _unique(value: Any, _row: AdRow) -> Written:
    return None if value is None else ", ".join(sorted(set(_members(value))))


def _strings(value: Any, _row: AdRow) -> Written:
    return None if value is None else ", ".join(_members(value))


def _member_count(value: Any, _row: AdRow) -> Written:
    return None if value is None else str(len(_members(value)))


def _remote_host(_value: Any, row: AdRow) -> Written:
    grid = row.value("JobUniverse") == 9
    return _text(row, "GridResource" if grid else "RemoteHost") or None


def _as_it_is(value: Any, _row: AdRow) -> Written:
    return None if value is None else str(value)


def _kept(value: Any, row: AdRow) -> Written:
    return value if isinstance(value, str) else row.text("Owner") if row.stored("Owner") is not None else None


FUNCTIONS: Final = {
    "ACTIVITY_CODE": PrintFunction(_activity_code, ("State", "Activity"), always=True),
    "ACTIVITY_OR_OCU": PrintFunction(_as_it_is),
    "ACTIVITY_TIME": PrintFunction(_elapsed, ("LastHeardFrom", "MyCurrentTime")),
    "BATCH_NAME": PrintFunction(_batch_name, ("JobBatchName", "DAGNodeName"), always=True),
    "BUFFER_IO_MISC": PrintFunction(_transfers, ("TransferringInput", "TransferringOutput", "TransferQueued"), always=True),
    "CONDOR_PLATFORM": PrintFunction(_condor_platform),
    "CONDOR_VERSION": PrintFunction(_version),
    "CPU_TIME": PrintFunction(_cpu_time, ("RemoteWallClockTime", "JobCurrentStartDate", "JobStatus"), always=True),
    "CPU_UTIL": PrintFunction(_cpu_util, ("RemoteUserCpu", "CommittedTime"), always=True),
    "DAG_OWNER": PrintFunction(_kept, ("Owner",), always=True),
    "DATE": PrintFunction(_figure(moment)),
    "DUE_DATE": PrintFunction(_due, ("LastHeardFrom", "MyCurrentTime")),
    "ELAPSED_TIME": PrintFunction(_elapsed, ("LastHeardFrom", "MyCurrentTime")),
    "GRID_JOB_ID": PrintFunction(_grid_job),
    "GRID_RESOURCE": PrintFunction(_grid_resource),
    "GRID_STATUS": PrintFunction(_as_it_is),
    "JOB_COMMAND": PrintFunction(_command, ("Args", "Arguments")),
    "JOB_DESCRIPTION": PrintFunction(_described, ("JobDescription", "Cmd", "Args", "Arguments")),
    "JOB_FACTORY_MODE": PrintFunction(_table(_MODES, "Unk")),
    "JOB_ID": PrintFunction(_job_id, ("ProcId", "JobId"), always=True),
    "JOB_STATUS": PrintFunction(_status, ("TransferringInput", "TransferringOutput", "TransferQueued")),
    "JOB_STATUS_RAW": PrintFunction(_table(_STATUS_WORDS, "Unk    ")),
    "JOB_UNIVERSE": PrintFunction(_table(_UNIVERSES, "Unknown")),
    "LOAD_AVG": PrintFunction(_figure(lambda value: f"{value:.3f}")),
    "MEMBER_COUNT": PrintFunction(_member_count),
    "MEMORY_USAGE": PrintFunction(_memory_usage, ("MemoryUsage", "ImageSize"), always=True),
    "OWNER": PrintFunction(_kept, ("Owner",), always=True),
    "PLATFORM": PrintFunction(_platform, ("Arch", "OpSysAndVer")),
    "QDATE": PrintFunction(_figure(moment)),
    "READABLE_BYTES": PrintFunction(_figure(readable(1))),
    "READABLE_KB": PrintFunction(_figure(readable(1024))),
    "READABLE_MB": PrintFunction(_figure(readable(1024 * 1024))),
    "REMOTE_HOST": PrintFunction(_remote_host, ("JobUniverse", "RemoteHost", "GridResource"), always=True),
    "RUNTIME": PrintFunction(_figure(run_time)),
    "SLOT_COUNT_TAG": PrintFunction(_slot_letter),
    "SLOT_TYPE_LETTER": PrintFunction(_slot_letter),
    "STRINGS_FROM_LIST": PrintFunction(_strings),
    "TIME": PrintFunction(_figure(run_time)),
    "UNIQUE": PrintFunction(_unique),
}  # fmt: skip
"""By the names that HTCondor's tools have for them."""
