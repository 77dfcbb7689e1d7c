"""
Which worker of pytest-xdist runs which file.

Most files wait most of the time: for containers, leases, batch systems. Scenarios keep a core busy. Taken as they come,
the first leave the cores idle, and later the second slow each other down. So half of the workers begin with the
scenarios and half with all else; a worker that is done with its own takes what the others have left.

The scenarios stay together in a worker, since they use one pool in turn. Those that want other services of it come last: the
pool ends for each of them, and would be started once more for the next file. The pages of that pool are one piece: they want
the same settings and the same browser.
"""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Final

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

SCENARIOS: Final = "tests/scenario/"
PAGES: Final = "tests/scenario/pages"
OWN_POOL: Final = f"{PAGES}/test_hub_pages.py"
LONG: Final = (
    "tests/scenario/test_servers.py",
    PAGES,
    "tests/scenario/test_site.py",
    "tests/scenario/test_lease_steps.py",
    "tests/scenario/test_faults.py",
    "tests/integration/execution/containers/test_containers.py",
    "tests/integration/execution/containers/test_engines.py",
    "tests/conformance/batch/test_sge.py",
)
"""What takes the longest: begun last, it would be all that runs at the end."""

_TOP: Final = Path(__file__).parents[1]
_NEEDED: Final = 2
"""Tests that a worker has to know to run one of them."""


def piece_of(test: str) -> str:
    """What a test is run with in one worker: its file, or the directory of the pages."""
    file = test.partition("::")[0]
    return PAGES if file.startswith(f"{PAGES}/") and file != OWN_POOL else file


@cache
def wants_other_services(piece: str) -> bool:
    """Whether a scenario says which services its pool has, or has those of Dask."""
    file = _TOP / piece
    if not piece.startswith(SCENARIOS) or not file.is_file():
        return False
    text = file.read_text(encoding="utf-8")
    return any(word in text for word in ("daemon_list", "dask_pools"))


def chosen(waiting: Collection[str], worker: int) -> str:
    """The next piece for the worker with this number; at least one waits."""
    own = [file for file in waiting if file.startswith(SCENARIOS) == (worker % 2 == 0)]

    def rank(piece: str) -> tuple[int, bool]:
        return LONG.index(piece) if piece in LONG else len(LONG), wants_other_services(piece)

    return min(own or waiting, key=rank)


class FilesInTwoQueues(LoadFileScheduling):
    """Tests of one file stay together, and files that compute run beside files that wait."""

    def _split_scope(self, nodeid: str) -> str:
        return piece_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        for piece in [piece for piece, tests in self.workqueue.items() if all(tests.values())]:
            del self.workqueue[piece]  # of a worker that has ended, and done with
        if self.workqueue:
            number = int(str(node.gateway.id).removeprefix("gw"))
            self.workqueue.move_to_end(chosen(self.workqueue, number), last=False)
            super()._assign_work_unit(node)

    def _reschedule(self, node: WorkerController) -> None:
        """
        Give a worker more before it has nothing: it runs a test when it knows the next one, or that there is none.
        """
        super()._reschedule(node)
        while not node.shutting_down and self._pending_of(self.assigned_work[node]) < _NEEDED:
            if self.workqueue:
                self._assign_work_unit(node)
            else:
                node.shutdown()
