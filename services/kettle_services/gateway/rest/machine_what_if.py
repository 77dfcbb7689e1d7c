"""
Which jobs that wait could run on a machine that is not there: the matcher's own answer, about one slot that nobody has.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import asyncpg

from kettle.bus.ports import Bus
from kettle.classad import FOREIGN_STEPS, ClassAd, Context
from kettle.classad.printing import quoted_string
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.collector_ads import all_ads
from kettle_services.gateway.rest.job_rows import SCHEDD, Viewer
from kettle_services.gateway.rest.job_tables import QUERIES, JobTables
from kettle_services.gateway.rest.past import require_expressions
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.ads.types import Ad, Scalar
from kettle_wire.rest.machine_what_if import AskMachineWhatIf, MachineChange, MachineWhatIf, WaitingCluster
from kettle_wire.rest.problem import ProblemCode

if TYPE_CHECKING:
    from kettle.matchmaking import Explainer

MOST: Final = 200
"""Clusters that are looked at, those of which most jobs wait; each takes some milliseconds of this process."""


class MachineWhatIfQuestions:
    """Answers them."""

    def __init__(self, bus: Bus, collector: str, tables: JobTables) -> None:
        self._bus = bus
        self._collector = collector
        self._tables = tables

    async def ask(self, asked: Asked) -> Answer:
        """The clusters that wait, with what the machine says to each."""
        parameters: AskMachineWhatIf = asked.parameters
        body: MachineChange = asked.body
        require_expressions(body.attributes)
        slots = await all_ads(
            self._bus, self._collector, "Machine", f"StartdName =?= {quoted_string(parameters.name)}"
        )
        if not slots:
            raise RequestRefused(
                404,
                ProblemCode.NOT_FOUND,
                f"there is no machine {parameters.name}: the list of machines has those that are there",
            )
        async with self._tables.read() as reading:
            rows = await reading.fetch(QUERIES["waiting_clusters"], parameters.owner, MOST)
            ads = await reading.ads_of_queued(rows)
        viewer, explainer = (
            Viewer.of(asked.reader, ()),
            _explainer(_changed(max(slots, key=_size), body.attributes)),
        )
        clusters: list[WaitingCluster] = []
        for row, ad in zip(rows, ads, strict=True):
            clusters.append(_looked_at(explainer, row, viewer.sees(ad or {}, row["owner"])))
            await asyncio.sleep(0)  # others are answered meanwhile
        return Answer(_told(parameters.name, clusters, rows[0]["clusters"] if rows else 0))


def _size(slot: Ad) -> tuple[bool, float]:
    """The slot that is divided comes before its parts, and the one with most cores before others."""
    cores = slot.get("TotalSlotCpus", slot.get("Cpus"))
    return slot.get("DynamicSlot") is not True, float(cores) if isinstance(cores, int | float) else 0.0


def _changed(slot: Ad, changes: Mapping[str, Scalar]) -> Ad:
    """
    A slot with other attributes, however their names are written; what it has of a resource it has in all.
    """
    both: dict[str, Scalar] = dict(changes)
    for name in slot:
        resource = name.lower().removeprefix("totalslot")
        value = next((value for said, value in changes.items() if said.lower() == resource), None)
        if name.lower() != resource and value is not None:
            both[name] = value
    gone = {name.lower() for name in both}
    return {name: value for name, value in slot.items() if name.lower() not in gone} | both


def _explainer(slot: Ad) -> "Explainer":
    """What looks at jobs for this one slot."""
    from kettle.classad.columnar import Table  # numpy, which no other answer needs
    from kettle.matchmaking import Explainer

    table, now = Table(), int(time.time())
    table.put_many([("what-if", slot)])
    return Explainer(table, table.all_rows, Context(now=lambda: now, max_steps=FOREIGN_STEPS), policies=True)


def _looked_at(explainer: "Explainer", row: asyncpg.Record, ad: Ad) -> WaitingCluster:
    found = explainer.explain(ClassAd.from_wire(ad))
    refused = "" if found.able else found.fault or "; ".join(each.text for each in found.refusals)
    return WaitingCluster(
        id=f"{row['cluster']}@{row['shard'].removeprefix(SCHEDD)}",
        owner=row["owner"],
        jobs=row["jobs"],
        able=bool(found.able),
        refused=refused,
    )


def _told(name: str, clusters: Sequence[WaitingCluster], all_clusters: int) -> MachineWhatIf:
    waiting, able = sum(each.jobs for each in clusters), sum(each.jobs for each in clusters if each.able)
    more = all_clusters - len(clusters)
    looked_at = f" of the {len(clusters)} clusters with most of them" if more else ""
    return MachineWhatIf(
        name=name,
        sentence=f"{able} of {waiting} jobs that wait{looked_at} could run there, one after the other",
        waiting=waiting,
        able=able,
        clusters=list(clusters),
        more=more,
    )
