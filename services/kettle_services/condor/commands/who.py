"""condor_who: the jobs of this machine, and the daemons of it."""

import os
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from kettle.client.connections.condor_config import CondorConfig
from kettle.client.connections.pool_file import PoolFile
from kettle.client.errors import ClientError
from kettle.client.short_lived import ShortLivedClient
from kettle.terminal.text import visible
from kettle_services.condor.arguments.grammar import Option, TypedOption, understood
from kettle_services.condor.arguments.machines import host_of
from kettle_services.condor.connections.pool_client import client_of
from kettle_services.condor.errors import ToolError
from kettle_services.condor.printing import options
from kettle_services.condor.printing.options import PRINTING, Printing
from kettle_services.condor.printing.queue_table import command_line, run_time
from kettle_services.condor.printing.values import number
from kettle_wire.addresses import daemon_address
from kettle_wire.ads.daemon import prefix_of
from kettle_wire.ads.types import Ad
from kettle_wire.commands.queue import Select
from kettle_wire.jobs import JobId

OPTIONS: Final = PRINTING | {
    "address": Option(takes=1),
    "allpids": Option(),
    "daemons": Option(),
    "debug": Option(),
    "log": Option(takes=1),
    "pidof": Option(takes=1),
    "pids": Option(takes=1),
    "pool": Option(takes=1),
    "quick": Option(),
    "wide": Option(letters=True),
}
HELP: Final = {
    "condor_who": f"""\
usage: condor_who [options]

Who has a slot of this machine, for which job, since when and with which program; or the daemons of this machine.

  -daemons               the daemons, as their master tells
  -allpids               under PID all processes of a job, with commas, and not only its first
  -quick                 which of them are alive, and where, for programs
{options.HELP}\
  -pool P                of which pool
  -wide, -debug          change nothing here
""",
}
_TITLES: Final = ("OWNER", "CLIENT", "SLOT", "JOB", "RUNTIME", "PID", "PROGRAM")
_DAEMONS: Final = ("Daemon", "State", "PID", "Restarts")
_SLOT: Final = (
    "Name", "SlotID", "DSlotId", "RemoteOwner", "ClientMachine", "RemoteScheddName", "JobId", "JobStart",
)  # fmt: skip
_JOB: Final = ["ClusterId", "ProcId", "JobPid", "Cmd", "Args", "Arguments"]
_UNKNOWN: Final = "?"

_ALIVE: Final = frozenset({"Running", "Standby"})


class _Wanted(msgspec.Struct):
    """What was typed."""

    printing: Printing
    daemons: bool = False
    allpids: bool = False
    quick: bool = False
    pool: str = ""


def run(_name: str, words: list[str]) -> int:
    """Show them."""
    wanted = _Wanted(Printing())
    for given in understood(words, OPTIONS):
        if not wanted.printing.read_option(given):
            _take(wanted, given)
    client = client_of(CondorConfig(os.environ), pool=wanted.pool)
    kind, condition = ("DaemonMaster", "true") if wanted.daemons else ("Machine", "JobId isnt undefined")
    constraint = f"({_here(client)}) && ({condition})"
    if wanted.printing.said:
        wanted.printing.show(lambda names: _ads(client, kind, constraint, names))
    elif wanted.quick:
        for master in _ads(client, "DaemonMaster", _here(client), []):
            sys.stdout.writelines(f"{line}\n" for line in _alive(master, client.pool))
    elif wanted.daemons:
        masters = _ads(client, kind, constraint, [])
        _write(_DAEMONS, [row for ad in masters for row in _kept(ad)])
    else:
        slots = _ads(client, kind, constraint, list(_SLOT))
        _write(_TITLES, [_row(ad, job, wanted) for ad, job in _with_jobs(client, slots)])
    return 0


def _take(wanted: _Wanted, given: TypedOption) -> None:
    match given.name:
        case "daemons" | "allpids" as name:
            setattr(wanted, name, True)
        case "pool":
            wanted.pool = given.values[0]
        case "quick":
            wanted.quick = True
        case "wide" | "debug":
            pass
        case "":
            raise ToolError(f"condor_who is about this machine; for others: condor_status {given.values[0]}")
        case refused:
            raise ToolError(f"condor_who: -{refused} is not carried out; leave it out")


def _alive(master: Ad, pool: PoolFile) -> Iterator[str]:
    """Each daemon with its process and its address, as programs read it."""
    names = {
        "COLLECTOR": pool.collector,
        "NEGOTIATOR": pool.negotiator,
        "SCHEDD": pool.schedd,
        "MASTER": str(master.get("Name")),
        "STARTD": str(master.get("Name")),
    }
    for name in str(master.get("DaemonList", "")).upper().split(", "):
        state = "Running" if name == "MASTER" else str(master.get(f"{name}_State"))
        yield f'{name} = "{"Alive" if state in _ALIVE else state}"'
        pid = master.get("MasterPid" if name == "MASTER" else f"{name}_Pid")
        if pid is not None:
            yield f"{name}_PID = {pid}"
        if name in names:
            yield f'{name}_Addr = "{daemon_address(pool.nats_url, names[name], name.lower())}"'


def _ads(client: ShortLivedClient, kind: str, constraint: str, names: list[str]) -> list[Ad]:
    return client.run(lambda pool: pool.ads(kind, constraint=constraint, projection=names))


def _here(client: ShortLivedClient) -> str:
    from kettle.classad.printing import quoted_string

    names = map(quoted_string, sorted({host_of(client), socket.gethostname()}))
    return " || ".join(f"Machine == {name} || Name == {name}" for name in names)


def _with_jobs(client: ShortLivedClient, slots: Sequence[Ad]) -> Iterator[tuple[Ad, Ad]]:
    """What their schedds say of the jobs; of a schedd that does not answer nothing is known."""
    by_schedd: dict[str, list[JobId]] = {}
    for ad in slots:
        by_schedd.setdefault(str(ad.get("RemoteScheddName")), []).append(JobId.parse(str(ad.get("JobId"))))
    jobs: dict[tuple[str, str], Ad] = {}
    for schedd, ids in by_schedd.items():
        try:
            found = _jobs(client, schedd, ids)
        except ClientError as error:
            sys.stderr.write(f"condor_who: {error}\n")
            continue
        for job in found:
            jobs[schedd, f"{number(job, 'ClusterId'):.0f}.{number(job, 'ProcId'):.0f}"] = job
    for ad in slots:
        yield ad, jobs.get((str(ad.get("RemoteScheddName")), str(ad.get("JobId"))), {})


def _jobs(client: ShortLivedClient, schedd: str, ids: list[JobId]) -> list[Ad]:
    return client.run(lambda pool: pool.at(schedd).jobs(Select(jobs=ids), projection=_JOB))


def _row(slot: Ad, job: Ad, wanted: _Wanted) -> tuple[str, ...]:
    part = f"_{slot['DSlotId']}" if "DSlotId" in slot else ""
    began = number(slot, "JobStart")
    return (
        str(slot.get("RemoteOwner", _UNKNOWN)),
        str(slot.get("ClientMachine", _UNKNOWN)),
        f"{slot.get('SlotID', _UNKNOWN)}{part}",
        str(slot.get("JobId", _UNKNOWN)),
        run_time(time.time() - began) if began else _UNKNOWN,
        process_ids(int(number(job, "JobPid"))) if wanted.allpids else str(job.get("JobPid", _UNKNOWN)),
        command_line(job) if "Cmd" in job else _UNKNOWN,
    )


def process_ids(first: int) -> str:
    """The processes of a job by its first, as far as they are there still."""
    if first <= 0:
        return _UNKNOWN
    from kettle.execution.system.linux import descendants_of

    return ",".join(map(str, [first, *sorted(descendants_of(first))]))


def _kept(master: Ad) -> Iterator[tuple[str, ...]]:
    yield ("Master", "Running", str(master.get("MasterPid", _UNKNOWN)), "0")
    for daemon in str(master.get("DaemonList", "")).split(", ")[1:]:
        prefix = prefix_of(daemon)
        pid = int(number(master, f"{prefix}_Pid"))
        yield (
            daemon.capitalize(),
            str(master.get(f"{prefix}_State", _UNKNOWN)),
            str(pid or "no"),
            f"{number(master, f'{prefix}_Restarts'):.0f}",
        )


def _write(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    rows = [tuple(map(visible, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    for row in (titles, *rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        sys.stdout.write(" ".join(cells).rstrip() + "\n")
