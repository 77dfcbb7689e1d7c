"""condor_qedit: which jobs, and which values."""

from collections.abc import Callable
from typing import Any

import pytest

from kettle_services.condor.commands import edit
from kettle_services.condor.errors import WordsError
from kettle_wire.ads.types import Ad, Expr
from kettle_wire.commands.queue import Acted, OutcomeRun, Select
from kettle_wire.endpoint import Position
from kettle_wire.jobs import JobId


class Queue:
    """A queue that notes what it is asked to change."""

    def __init__(self) -> None:
        self.edits: list[tuple[Select, Ad]] = []

    def run(self, action: Callable[[Any], Acted]) -> Acted:
        return action(self)

    def edit_jobs(self, select: Select, attributes: Ad, *, add_to_priority: int) -> Acted:
        assert 0 == add_to_priority
        self.edits.append((select, attributes))
        runs = [OutcomeRun(cluster=12, first=0, count=1, outcome="done")]
        return Acted(runs=runs, position=Position("schedd", 0))


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Queue:
    found = Queue()

    def client_of(*_words: object, **_options: object) -> Queue:
        return found

    monkeypatch.setattr(edit, "client_of", client_of)
    return found


JOB = Select(jobs=[JobId(12, 0)])


@pytest.mark.parametrize(
    ("words", "select", "attributes"),
    [
        (["12.0", "JobPrio", "-5"], JOB, {"JobPrio": -5}),
        (["12.0", "JobPrio=-5"], JOB, {"JobPrio": -5}),
        (["-name", "here", "12.0", "-debug", "A", "-n", "B", "-1.5"], JOB, {"A": Expr(" -n"), "B": -1.5}),
        (["-constraint", "true", "A", "-1"], Select(constraint="true"), {"A": -1}),
        (["12.0", "-constraint", "x", "A", "1"], Select(jobs=[JobId(12, 0)], constraint="x"), {"A": 1}),
        (["-owner", "ada", "A", "1"], Select(owners=["ada"]), {"A": 1}),
        (["ada", "A", "1"], Select(owners=["ada"]), {"A": 1}),
    ],
)
def test_a_value_may_begin_with_a_dash(
    queue: Queue, words: list[str], select: Select, attributes: Ad
) -> None:
    """Options stand before the names and values, which are taken as they are."""
    assert 0 == edit.run("condor_qedit", words)
    ((chosen, changed),) = queue.edits
    assert select == chosen
    assert attributes == changed


@pytest.mark.parametrize(
    "words",
    [["12.0"], ["12.0", "A"], ["12.0", "A", "1", "-name", "x"], ["-constraint", "true", "-x", "1"], ["-5"]],
)
def test_what_is_no_edit_is_refused(queue: Queue, words: list[str]) -> None:
    """An option behind the values is no name, and nothing is changed."""
    with pytest.raises(WordsError):
        edit.run("condor_qedit", words)
    assert [] == queue.edits
