"""The table of `condor_q -dag`: nodes below the job of their DAG, with their names."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kettle.client.jobs.status import id_of
from kettle_services.condor.printing.queue_table import OWNER_WIDTH, JobTable
from kettle_services.condor.printing.values import Needs
from kettle_wire.ads.types import Ad
from kettle_wire.commands.queue import Unmade

_TITLES: Final = ("OWNER         ", "OWNER/NODENAME")


class DagTable:
    """A line for each job; what is to stand below another waits until all are there."""

    def __init__(self, how: str, time_of: str = "wall") -> None:
        """`how` and `time_of`: those of the table of jobs."""
        self._table: Final = JobTable(how, time_of)
        self.needs: Needs = Needs((*self._table.needs.names, "DAGManJobId", "DAGNodeName"), evaluated=False)
        self.totals: bool = self._table.totals
        self._below: Final[dict[int, list[Ad]]] = {}
        """The jobs of nodes, by the cluster of their DAG job."""
        self._others: Final[list[Ad]] = []
        self._clusters: Final[set[int]] = set()

    def begin(self) -> Iterable[str]:
        """The titles."""
        return [title.replace(*_TITLES) for title in self._table.begin()]

    def add(self, ads: Sequence[Ad]) -> Iterable[str]:
        """They are kept."""
        for ad in ads:
            self._clusters.add(id_of(ad).cluster)
            dag = ad.get("DAGManJobId")
            # A node whose DAG job is not among the jobs that were asked for stands for itself.
            if isinstance(dag, int) and dag in self._clusters:
                self._below.setdefault(dag, []).append(ad)
            else:
                self._others.append(ad)
        return ()

    def end(self, unmade: Sequence[Unmade]) -> Iterable[str]:
        """All lines."""
        del unmade
        return self._table.add([*self._in_order(self._others, 0)])

    def _in_order(self, ads: Sequence[Ad], depth: int) -> Iterator[Ad]:
        for ad in ads:
            name = f"{' ' * depth}|-{ad.get('DAGNodeName', '???')}"
            yield {**ad, "Owner": name[:OWNER_WIDTH]} if depth else ad
            yield from self._in_order(self._below.get(id_of(ad).cluster, ()), depth + 1)
