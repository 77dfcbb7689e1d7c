"""Submissions of one description that differ only in what is given beside it."""

from pathlib import Path

import pytest

from kettle.client.jobs.submission import prepare, prepare_alike
from kettle.submit import SubmitError, parse
from kettle.submit.alike import is_shared

ENVIRON = {"HOME": "/home/ada"}
HEAD = "executable = /bin/sleep\nlog = all.log\n"
GIVEN = [
    {"JOB": f"n{number}", "RETRY": "0", "who": who, "MY.Place": f"{number}"}
    for number, who in enumerate(["ada", "bob $(JOB)", "", "ada"])
]


@pytest.mark.parametrize(
    ("text", "shared"),
    [
        ("arguments = $(JOB) $(RETRY) $(who) $(Process)/$(Step)/$(Row)\nqueue\n", True),
        ('environment = "A=\'$(who)\'"\n+Mine = "$(JOB)"\noutput = $(JOB).out\nqueue\n', True),
        ("prefix = $(JOB)/$(who:nobody)\narguments = $(prefix) $UPPER(JOB)\nqueue 1\n", True),
        ("request_memory = 2 * 64\nrequirements = JobPrio < 3\npriority = $INT(MY.Place)\nqueue\n", True),
        ("if defined who\narguments = $(who)\nelse\narguments = none\nendif\nqueue\n", False),
        ("JOB = fixed\narguments = $(JOB)\nqueue\n", False),
        ("who = $(who)!\narguments = $(who)\nqueue\n", False),
        ("arguments = $(Process) $(JOB)\nqueue 2\n", False),
        ("arguments = $(x) $(JOB)\nqueue x in (a)\n", False),
        ("arguments = $(JOB)\nqueue 1\nqueue 1\n", False),
    ],
)
def test_they_are_what_they_would_be_alone(text: str, shared: bool, tmp_path: Path) -> None:
    """Whether the description can be read once for all of them or not."""
    read = parse(HEAD + text, source="x", cwd=tmp_path, environ=ENVIRON, given=GIVEN[0], tolerant=True)
    alone = [
        prepare(
            HEAD + text,
            given=each,
            cwd=tmp_path,
            environ=ENVIRON,
            source="x",
            submit_method=1,
            tolerant=True,
        )
        for each in GIVEN
    ]
    together = prepare_alike(HEAD + text, GIVEN, cwd=tmp_path, environ=ENVIRON, source="x", submit_method=1)
    assert shared == is_shared(read, GIVEN)
    assert [each.job(proc) for each in alone for proc in range(each.count)] == [
        each.job(proc) for each in together for proc in range(each.count)
    ]


@pytest.mark.parametrize("bad", [{"JOB": "\ud800"}, {"other": "1"}, {"job": "a", "JOB": "b"}])
def test_what_cannot_stand_beside_the_others_is_read_alone(bad: dict[str, str], tmp_path: Path) -> None:
    """Text that is none, other names than the others have, and one name twice."""
    text = f"{HEAD}queue\n"
    read = parse(text, source="x", cwd=tmp_path, environ=ENVIRON, given={"JOB": "a"}, tolerant=True)
    assert not is_shared(read, [{"JOB": "a"}, bad])


def test_a_refusal_is_one_of_all(tmp_path: Path) -> None:
    """Who wants to know of which tries each alone."""
    text = f"{HEAD}request_memory = $(memory)\nqueue\n"
    given = [{"memory": "64"}, {"memory": "much of it"}]
    with pytest.raises(SubmitError):
        prepare_alike(text, given, cwd=tmp_path, environ=ENVIRON, source="x", submit_method=1)
