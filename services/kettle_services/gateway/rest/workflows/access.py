"""Which workflow is meant, and who may look at it."""

from collections.abc import Callable
from typing import Final

from kettle.auth.mapping.levels import Level
from kettle.bus.ports import RefusedError
from kettle_services.gateway.rest.application import Asked
from kettle_services.gateway.rest.job_rows import SCHEDD
from kettle_services.gateway.rest.job_tables import QUERIES, JobTables
from kettle_services.gateway.rest.persons import Person
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_services.gateway.rest.workflows.views import Watched, WorkflowViews
from kettle_wire.codes import RefusalCode
from kettle_wire.rest.problem import ProblemCode

_LARGEST: Final = 2**31


class WorkflowAccess:
    """Finds workflows for people."""

    def __init__(self, tables: JobTables, views: WorkflowViews, may: Callable[[Person, Level], bool]) -> None:
        """`may`: whether a person has a level."""
        self._tables = tables
        self.views: Final = views
        self._may = may

    def administers(self, person: Person) -> bool:
        """Whether somebody may look at everybody's."""
        return self._may(person, Level.ADMINISTRATOR)

    async def place(self, text: str) -> tuple[str, int]:
        """
        The access point and the number that a name means; raises RequestRefused. One whose access point is named need not be in the
        tables yet.
        """
        number, _, schedd = text.partition("@")
        if int(number) >= _LARGEST:
            raise no_such_workflow(text)
        async with self._tables.read() as reading:
            if schedd:
                if SCHEDD + schedd not in await reading.frames():
                    raise no_such_workflow(text)
                return schedd, int(number)
            rows = await reading.fetch(QUERIES["shards_of_cluster"], int(number), None)
        schedds = [str(row["shard"]).removeprefix(SCHEDD) for row in rows]
        if not schedds:
            raise no_such_workflow(text)
        if len(schedds) > 1:
            names = ", ".join(f"{number}@{each}" for each in schedds)
            raise RequestRefused(
                409,
                ProblemCode.AMBIGUOUS,
                f"several access points have a cluster {number}: name one of {names}",
            )
        return schedds[0], int(number)

    async def own_place(self, asked: Asked, text: str) -> tuple[str, int]:
        """
        The place of a workflow that somebody may look at, as far as the tables know whose it is: to read all of it only to refuse it
        would be work that anybody could have done.  Raises RequestRefused.
        """
        schedd, number = await self.place(text)
        async with self._tables.read() as reading:
            rows = await reading.fetch(QUERIES["owners"], [SCHEDD + schedd], [number])
        for row in rows:
            self.require_may_look(asked, str(row["owner"]), text)
        return schedd, number

    async def watched(self, asked: Asked, text: str) -> Watched:
        """A workflow that has begun, as it is now; raises RequestRefused."""
        schedd, number = await self.own_place(asked, text)
        try:
            found = await self.views.of(schedd, number)
        except RefusedError as error:
            if error.code != RefusalCode.NOT_FOUND:
                raise
            raise no_such_workflow(text) from error
        self.require_may_look(asked, found.view.started.owner, text)
        return found

    def require_may_look(self, asked: Asked, owner: str, text: str) -> None:
        """Raises RequestRefused."""
        if owner != asked.person.name and not self.administers(asked.person):
            raise RequestRefused(
                403,
                ProblemCode.NOT_PERMITTED,
                f"workflow {text} is {owner}'s: {owner} may look at it, and administrators may",
            )


def no_such_workflow(text: str) -> RequestRefused:
    """There is none, or it has not begun."""
    return RequestRefused(
        404,
        ProblemCode.NOT_FOUND,
        f"there is no workflow {text} that has begun: it is named by the cluster of its DAG job, as the list of workflows has it",
    )
