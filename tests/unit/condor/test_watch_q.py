"""condor_watch_q: the picture of jobs, by their logs, and when it ends."""

from collections import Counter
from pathlib import Path

import pytest

from kettle.userlog import Aborted, Executing, LogEvent, Submitted, Terminated, render
from kettle_services.condor.commands import watch_q
from kettle_services.condor.errors import ToolError, WordsError
from kettle_services.condor.watch.board import Board, Cluster, Ending, Place
from kettle_services.condor.watch.picture import Wishes, bar, picture, summary
from kettle_wire.attempts import ExitRecord
from kettle_wire.jobs import JobId

AT = 1_790_000_000


def told(*events: tuple[int, int, int]) -> Board:
    """A board that has read events of a log: number, cluster, process."""
    board = Board()
    board.clusters[7] = Cluster(batch="night", log="/log")
    for number, cluster, proc in events:
        board.read(number, cluster, proc, "/log", "")
    return board


EVENTS = [(0, 7, 0), (0, 7, 1), (0, 7, 2), (1, 7, 1), (5, 7, 0), (0, 9, 0), (12, 9, 0), (0, 3, 0), (9, 3, 0)]


@pytest.mark.parametrize(
    ("by", "title", "expected"),
    [
        (
            "batch",
            "BATCH",
            """\
BATCH  REMOVED  HELD  IDLE  RUN  DONE  TOTAL  JOB_IDS
night        -     -     1    1     1      3  7.1, 7.2 [------=====#####]
ID: 9        -     1     -    -     -      1  9.0      [!!!!!!!!!!!!!!!!]
ID: 3        1     -     -    -     -      1  -        [!!!!!!!!!!!!!!!!]
""",
        ),
        (
            "cluster",
            "CLUSTER",
            """\
CLUSTER  REMOVED  HELD  IDLE  RUN  DONE  TOTAL  JOB_IDS
7              -     -     1    1     1      3  7.1, 7.2 [------====####]
9              -     1     -    -     -      1  9.0      [!!!!!!!!!!!!!!]
3              1     -     -    -     -      1  -        [!!!!!!!!!!!!!!]
""",
        ),
        (
            "log",
            "LOG",
            """\
LOG   REMOVED  HELD  IDLE  RUN  DONE  TOTAL  JOB_IDS
/log        1     1     1    1     1      5  7.1 ... 9.0 [------==##!!!!]
""",
        ),
    ],
)
def test_jobs_are_in_groups(by: str, title: str, expected: str) -> None:
    """Groups in which something still happens come first; columns without jobs are left out."""
    board = told(*EVENTS)
    wishes = Wishes(progress=False, summary=False, updated_at=False)
    lines = picture(title, board.rows(by, board.jobs()), wishes, width=73, moment="")
    assert expected.splitlines() == lines


def test_the_whole_picture() -> None:
    board = told(*EVENTS)
    lines = picture("BATCH", board.rows("batch", board.jobs()), Wishes(table=False), width=60, moment="now")
    assert [
        "Total Progress: [----------========########!!!!!!!!!!!!!!!!]",
        "",
        "Total: 5 jobs; 1 comple, 1 remove, 1 idle, 1 runnin, 1 held",
        "",
        "Updated at now",
    ] == lines


@pytest.mark.parametrize(
    ("width", "expected"),
    [(80, "Total: 4 jobs; 3 completed, 1 running"), (30, "Total: 4 jobs; 3 comp, 1 runn")],
)
def test_sums_are_shortened_until_they_fit(width: int, expected: str) -> None:
    counts: Counter[Place] = Counter({"DONE": 3, "RUN": 1})
    assert expected == summary(counts, width)
    assert summary(counts, 200, percentages=True).startswith(
        "Total: 4 jobs; 75% completed, 0% removed, 0% idle, 25% running"
    )


def test_a_bar_is_as_long_as_there_is_room() -> None:
    counts: Counter[Place] = Counter({"DONE": 1, "IDLE": 2})
    assert "[------###]" == bar(counts, 11)
    assert "[\033[93m--\033[0m\033[32m#\033[0m]" == bar(counts, 5, color=True)
    assert 79 == len(bar(counts, 500))
    assert "[   ]" == bar({}, 5)


def test_transfers_are_places_of_their_own() -> None:
    """Until the job runs, or is elsewhere."""
    board = told((0, 1, 0))
    for text, place in {
        "Started transferring input files": "INPUT",
        "Finished transferring input files": "INPUT",
    }.items():
        board.read(40, 1, 0, "/log", text)
        assert {(1, 0): place} == board.jobs()
    board.read(1, 1, 0, "/log", "")
    assert {(1, 0): "RUN"} == board.jobs()


@pytest.mark.parametrize(
    ("said", "places", "met"),
    [
        ("all,done", ["DONE", "DONE"], True),
        ("all,done", ["DONE", "REMOVED"], False),
        ("any,held,3", ["IDLE", "HELD"], True),
        ("none,active,7", ["DONE", "REMOVED"], True),
        ("none,active", ["DONE", "RUN"], False),
        ("all,done", [], False),
    ],
)
def test_it_ends_when_that_is_so(said: str, places: list[Place], met: bool) -> None:
    """By no jobs nothing is met: they may be still to come."""
    ending = watch_q.ending_of(said)
    assert met == ending.met(places)


def test_conditions_are_read() -> None:
    assert Ending("any", "held", 3) == watch_q.ending_of("ANY,held,3")
    for said, sentence in {
        "all": "as in all,done,0",
        "every,done": "GROUPER is one of all, any, none, not 'every'",
        "all,dome": "not 'dome'; do you mean done?",
        "all,done,256": "a number up to 255",
    }.items():
        with pytest.raises(WordsError, match=sentence):
            watch_q.ending_of(said)


def test_logs_are_watched_until_all_is_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Off a terminal each picture stands below the one before, without colours; no pool is needed."""
    one, other = JobId(12, 0), JobId(12, 1)
    events: list[LogEvent] = [
        Submitted(job=one, at=AT, host="<h>"),
        Submitted(job=other, at=AT, host="<h>"),
        Executing(job=one, at=AT, host="<h>"),
        Terminated(job=one, at=AT, exit=ExitRecord(code=0)),
        Aborted(job=other, at=AT),
    ]
    (tmp_path / "log").write_text("".join(map(render, events)))
    words = [
        "-files",
        str(tmp_path / "log"),
        str(tmp_path / "none"),
        "-exit",
        "none,active,4",
        "-exit",
        "any,held,5",
    ]
    assert 4 == watch_q.run("condor_watch_q", [*words, "-no-updated-at"])
    said = capsys.readouterr().out
    assert "ID: 12        1     -    -     1      2  -" in said
    assert "Total: 2 jobs; 1 completed, 1 removed\n...\n" in said
    assert 'Exiting with code 4 because of condition "none active" at ' in said.splitlines()[-1]
    assert "\033" not in said


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["12"], "'12' stands alone: write -clusters 12"),
        (["-clusters", "x"], "-clusters takes numbers"),
        (["-groupby", "bach"], "-groupby takes batch, cluster, log, not 'bach'; do you mean batch?"),
        (["-interval", "0"], "-interval takes seconds"),
        (["-tabel"], "Unrecognized argument -tabel; do you mean -table?"),
    ],
)
def test_what_cannot_be_watched_is_refused(words: list[str], sentence: str) -> None:
    with pytest.raises(ToolError, match=sentence):
        watch_q.run("condor_watch_q", words)
