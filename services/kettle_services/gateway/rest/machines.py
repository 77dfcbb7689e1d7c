"""
What is asked about one machine: of the collector what it is now, from the tables what runs there and when it came and left.
"""

from datetime import datetime

import msgspec

from kettle.bus.ports import Bus
from kettle.classad.printing import quoted_string
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.claims import jobs_on_machine
from kettle_services.gateway.rest.collector_ads import all_ads
from kettle_services.gateway.rest.job_rows import Viewer
from kettle_services.gateway.rest.job_tables import QUERIES, JobTables, Reading
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.rest.machines import GetMachine, Machine, Passage
from kettle_wire.rest.pool import AdOf
from kettle_wire.rest.problem import ProblemCode


class MachineQuestions:
    """Answers them."""

    def __init__(self, bus: Bus, collector: str, tables: JobTables) -> None:
        self._bus = bus
        self._collector = collector
        self._tables = tables

    async def get(self, asked: Asked) -> Answer:
        """A machine with its slots and what runs there."""
        parameters: GetMachine = asked.parameters
        async with self._tables.read() as reading:
            machine = await _recorded(reading, parameters.name, parameters.as_of)
        if parameters.as_of is None:
            machine = await self._with_ads(machine, asked)
        if machine.since is None and machine.attributes is None and not machine.jobs:
            when = " then" if parameters.as_of else ""
            raise RequestRefused(
                404,
                ProblemCode.NOT_FOUND,
                f"there is no machine {parameters.name}{when}: the list of machines has those that are there",
            )
        return Answer(machine)

    async def _with_ads(self, machine: Machine, asked: Asked) -> Machine:
        parameters: GetMachine = asked.parameters
        viewer = Viewer.of(asked.reader, parameters.fields)
        name = quoted_string(machine.name)
        startds = await all_ads(
            self._bus, self._collector, "StartDaemon", f"Name =?= {name}", parameters.fields
        )
        slots = await all_ads(
            self._bus, self._collector, "Machine", f"StartdName =?= {name}", parameters.fields
        )
        return msgspec.structs.replace(
            machine,
            present=bool(startds) or machine.present,
            attributes=viewer.sees(startds[0], "") if startds else None,
            slots=[AdOf(name=str(ad.get("Name", "")), attributes=viewer.sees(ad, "")) for ad in slots],
        )


async def _recorded(reading: Reading, name: str, moment: datetime | None) -> Machine:
    if moment is None:
        rows = await reading.fetch(QUERIES["machine"], name)
    else:
        rows = await reading.fetch(QUERIES["machine_then"], name, moment)
    passages = await reading.fetch(QUERIES["passages"], name, moment)
    known = dict(rows[0]) if rows else {}
    return Machine(
        name=name,
        present=bool(known.get("present", False)),
        since=known.get("since"),
        cpus=known.get("cpus"),
        memory=known.get("memory"),
        jobs=await jobs_on_machine(reading, name, moment),
        passages=[Passage(at=row["at"], came=row["came"], reason=row["reason"]) for row in passages],
    )
