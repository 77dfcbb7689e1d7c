"""
Which worker of pytest-xdist runs which file.

Most files wait most of the time: for containers, leases, batch systems. Scenarios keep a core busy. Taken as they come,
the first leave the cores idle, and later the second slow each other down. So half of the workers begin with the
scenarios and half with all else; a worker that is done with its own takes what the others have left.

The scenarios stay together in a worker, since they use one pool in turn. Those that want other services of it come last: the
pool ends for each of them, and would be started once more for the next file. What has the settings of another file is one piece
with it, for the same reason. The pages of that pool are one piece: they want the same settings and the same browser.
"""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

import re
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
_TAKEN_OVER: Final = re.compile(r"^from \.(test_\w+) import .*\bconfiguration\b(?! as)", re.MULTILINE)
_OF_SERVICES: Final = ("daemon_list", "SERVICES", "dask_pools")
_NEEDED: Final = 2
"""Tests that a worker has to know to run one of them."""


def piece_of(test: str) -> str:
    """What a test is run with in one worker: the pages, or its file and what has the same settings."""
    file = test.partition("::")[0]
    return PAGES if file.startswith(f"{PAGES}/") and file != OWN_POOL else _with_settings_of(file)


@cache
def _with_settings_of(file: str) -> str:
    """The scenario whose settings of a pool a scenario has as well, or itself."""
    taken = _TAKEN_OVER.search(_text(file))
    return f"{SCENARIOS}{taken[1]}.py" if taken else file


@cache
def wants_other_services(piece: str) -> bool:
    """Whether a scenario names the services of its pool."""
    return any(word in _text(piece) for word in _OF_SERVICES)


def _text(piece: str) -> str:
    """What stands in a scenario; nothing in what is none, or is many."""
    file = _TOP / piece
    return file.read_text(encoding="utf-8") if piece.startswith(SCENARIOS) and file.is_file() else ""


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
