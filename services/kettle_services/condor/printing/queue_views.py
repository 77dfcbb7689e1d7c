"""
The tables of condor_q that are asked for by options, in the language of print formats; and totals in columns of one's own.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from kettle.client.batches import Batches, by_set
from kettle.client.jobs.status import id_of, status_of
from kettle_services.condor.errors import ToolError
from kettle_services.condor.printing.print_format import PrintFormat, print_format_of
from kettle_services.condor.printing.print_table import PrintTable, TableForm
from kettle_services.condor.printing.queue_table import STATUSES
from kettle_services.condor.printing.values import AdRow, Needs, number
from kettle_wire.ads.types import Ad
from kettle_wire.commands.queue import Unmade
from kettle_wire.jobs import JobId


class View(Protocol):
    """A table of jobs that come little by little."""

    needs: Needs
    totals: bool
    """Whether the standard totals stand below it."""

    def begin(self) -> Iterable[str]:
        """What stands before the first job."""
        ...

    def add(self, ads: Sequence[Ad]) -> Iterable[str]:
        """Some jobs."""
        ...

    def end(self, unmade: Sequence[Unmade]) -> Iterable[str]:
        """There are no more but those that come into the queue as there is room."""
        ...


_JOB: Final = """\
SELECT
   ClusterId AS ' ID' NOSUFFIX WIDTH 5 PRINTF '%4d.'
   ProcId AS ' ' NOPREFIX WIDTH 3 PRINTF '%-3d'
   Owner AS OWNER WIDTH -14 PRINTAS OWNER OR ??
"""
LAYOUTS: Final[Mapping[str, str]] = {
    "idle": f"""{_JOB}
   JobUniverse AS 'UNIVERSE ' PRINTAS JOB_UNIVERSE
   RequestCpus AS CPUS PRINTF '%4d'
   RequestMemory AS MEMORY PRINTF '%6d'
   NumShadowStarts ?: 0 AS STARTS PRINTF '%6d'
   LastRemoteHost AS LAST_HOST OR ' '
SUMMARY NONE
""",
    "grid": f"""{_JOB}
   GridJobStatus AS STATUS WIDTH -10 PRINTAS GRID_STATUS
   GridResource AS 'GRID->MANAGER    HOST' WIDTH -27 PRINTAS GRID_RESOURCE
   GridJobId AS GRID_JOB_ID PRINTAS GRID_JOB_ID
SUMMARY NONE
""",
    "io": f"""{_JOB}
   NumJobStarts AS RUNS PRINTF '%4d' OR ?
   JobStatus AS ST PRINTAS JOB_STATUS
   BytesRecvd AS ' INPUT' PRINTAS READABLE_BYTES OR ??
   BytesSent AS ' OUTPUT' PRINTAS READABLE_BYTES OR ??
   BytesRecvd + BytesSent AS ' RATE' WIDTH 10 PRINTAS READABLE_BYTES OR ??
   JobUniverse AS MISC PRINTAS BUFFER_IO_MISC
SUMMARY STANDARD
""",
}
"""By the option that asks for the table."""
_FACTORIES: Final = """\
SELECT
   ClusterId AS ' ID' NOSUFFIX WIDTH 5 PRINTF '%4d.'
   Dummy AS ' ' NOPREFIX WIDTH 3 OR ' '
   Owner AS OWNER WIDTH -14 PRINTAS OWNER OR ??
   QDate AS '  SUBMITTED' WIDTH 11 PRINTAS QDATE OR ' '
   JobMaterializeLimit AS ' LIMIT' WIDTH 6 PRINTF %6d OR ' '
   JobsPresent AS PRESNT WIDTH 6 PRINTF %6d
   JobsRunning AS '  RUN ' WIDTH 6 PRINTF %6d
   JobsIdle AS '  IDLE' WIDTH 6 PRINTF %6d
   JobsHeld AS '  HOLD' WIDTH 6 PRINTF %6d
   JobMaterializeNextProcId AS NEXTID WIDTH 6 PRINTF %6d
   JobMaterializePaused AS MODE PRINTAS JOB_FACTORY_MODE OR _
"""
_SETS: Final = """\
SELECT
   JobSetId AS JOBSETID WIDTH 8 PRINTF %8d
   JobSetName AS NAME
   Owner AS OWNER PRINTAS OWNER OR ??
   NumCompleted AS COMPLETE WIDTH 8 PRINTF %8d
   NumRemoved AS REMOVED WIDTH 7 PRINTF %7d
   NumIdle AS '   IDLE' WIDTH 7 PRINTF %7d
   NumRunning AS RUNNING WIDTH 7 PRINTF %7d
   NumHeld AS '   HELD' WIDTH 7 PRINTF %7d
"""


class FormatView:
    """The table of a print format."""

    def __init__(self, layout: PrintFormat) -> None:
        """Raises ToolError: it is about what the queue does not have."""
        if layout.source:
            raise ToolError(
                f"SELECT FROM {layout.source} is not carried out: the negotiator's autoclusters are not kept in the queue; "
                "SELECT UNIQUE counts jobs that are alike in the columns of the format"
            )
        self._form: Final = TableForm(PrintTable(layout), Alike(layout) if layout.unique else None)
        self.needs: Needs = self._form.needs
        self.totals: bool = layout.summary and not layout.totals

    def begin(self) -> Iterable[str]:
        """Columns are as wide as what comes last."""
        return ()

    def add(self, ads: Sequence[Ad]) -> Iterable[str]:
        """They are kept."""
        return self._form.add(ads)

    def end(self, unmade: Sequence[Unmade]) -> Iterable[str]:
        """All of the table."""
        del unmade
        return self._form.end()


class Alike:
    """Jobs of which those with the same values in all columns are one line: `SELECT UNIQUE`."""

    _COUNTED: Final = frozenset({"jobcount", "jobids"})

    def __init__(self, layout: PrintFormat) -> None:
        texts = [column.expression for column in layout.columns]
        texts += [order.expression for order in layout.order]
        self._texts: Final = [text for text in dict.fromkeys(texts) if text.lower() not in self._COUNTED]
        self._found: Final[dict[tuple[str, ...], tuple[Ad, list[JobId]]]] = {}

    def add(self, ads: Iterable[Ad]) -> None:
        """Some more jobs."""
        for ad in ads:
            row = AdRow(ad)
            key = tuple(row.quoted(text) for text in self._texts)
            self._found.setdefault(key, (ad, []))[1].append(id_of(ad))

    def ads(self) -> list[Ad]:
        """The first job of each kind, with JobCount and JobIds."""
        return [{**ad, "JobCount": len(jobs), "JobIds": _ranges(jobs)} for ad, jobs in self._found.values()]


def _ranges(jobs: Sequence[JobId]) -> str:
    """`12.0-4, 13.7`."""
    runs: list[list[JobId]] = []
    for job in jobs:
        if runs and runs[-1][-1] == JobId(job.cluster, job.proc - 1):
            runs[-1][1:] = [job]
        else:
            runs.append([job])
    return ", ".join(f"{run[0]}-{run[1].proc}" if len(run) > 1 else str(run[0]) for run in runs)


class FactoryView:
    """
    `-factory`: clusters whose jobs come into the queue little by little, and of which some are still to come.
    """

    def __init__(self) -> None:
        self._first: Final[dict[int, Ad]] = {}
        self._counts: Final[dict[int, dict[str, int]]] = {}
        names = ("ClusterId", "JobStatus", "QDate", "JobMaterializeLimit")
        self.needs: Needs = Needs(names, evaluated=False)
        self.totals: bool = False

    def begin(self) -> Iterable[str]:
        """Nothing yet."""
        return ()

    def add(self, ads: Sequence[Ad]) -> Iterable[str]:
        """Counts them."""
        for ad in ads:
            cluster = int(number(ad, "ClusterId"))
            self._first.setdefault(cluster, ad)
            counts = self._counts.setdefault(cluster, {})
            status = status_of(ad)
            counts[status] = counts.get(status, 0) + 1
        return ()

    def end(self, unmade: Sequence[Unmade]) -> Iterable[str]:
        """A line for each."""
        return PrintTable(print_format_of(_FACTORIES, "-factory")).lines([self._row(each) for each in unmade])

    def _row(self, unmade: Unmade) -> Ad:
        counts = self._counts.get(unmade.cluster, {})
        return {
            **self._first.get(unmade.cluster, {}),
            "ClusterId": unmade.cluster,
            "Owner": unmade.owner,
            "JobsPresent": sum(counts.values()),
            "JobsRunning": counts.get("running", 0) + counts.get("suspended", 0),
            "JobsIdle": counts.get("idle", 0),
            "JobsHeld": counts.get("held", 0),
            "JobMaterializeNextProcId": unmade.made,
            "JobMaterializePaused": unmade.paused,
        }


class SetView:
    """`-jobset`: a line for each job set."""

    def __init__(self) -> None:
        from kettle.client.batches import ATTRIBUTES

        self._batches: Final = Batches(by_set)
        self.needs: Needs = Needs(ATTRIBUTES, evaluated=False)
        self.totals: bool = False

    def begin(self) -> Iterable[str]:
        """Nothing yet."""
        return ()

    def add(self, ads: Sequence[Ad]) -> Iterable[str]:
        """Counts them."""
        self._batches.add(ads)
        return ()

    def end(self, unmade: Sequence[Unmade]) -> Iterable[str]:
        """A line for each; those that were removed are among the ones that have left the queue."""
        sets: list[Ad] = [
            {
                "JobSetId": each.number,
                "JobSetName": each.name,
                "Owner": each.owner,
                "NumCompleted": each.done,
                "NumRemoved": 0,
                "NumIdle": each.waiting,
                "NumRunning": each.running,
                "NumHeld": each.held,
            }
            for each in self._batches.rows(unmade)
        ]
        return PrintTable(print_format_of(_SETS, "-jobset")).lines(sets)


VIEWS: Final[Mapping[str, Callable[[], View]]] = {
    "factory": FactoryView,
    "jobset": SetView,
    **{name: (lambda name=name: FormatView(print_format_of(LAYOUTS[name], f"-{name}"))) for name in LAYOUTS},  # type: ignore[misc]
}
"""By the option that asks for the table."""


def own_totals(layout: PrintFormat, counts: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """
    What columns behind SUMMARY say of the totals: Jobs, Idle, Running, ...; MyJobs, ...; AllusersJobs, ...

    `counts`: of each of these beginnings (empty, `My`, `Allusers`) how many jobs there are by status.
    """
    ad: Ad = {}
    for beginning, statuses in counts.items():
        ad |= {f"{beginning}{status.capitalize()}": statuses.get(status, 0) for status in STATUSES}
        ad[f"{beginning}Jobs"] = sum(statuses.values())
    table = PrintTable(PrintFormat(columns=layout.totals, header=False))
    yield "\n"
    yield from table.lines([ad])
