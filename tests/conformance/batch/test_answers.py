"""
What batch systems say in every state: no word is taken for another one, and no half answer for a whole one.

The answers of Grid Engine were recorded; those of OpenPBS, Torque and LSF are written in the forms that their manuals give.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kettle_services.ce.domain.batch import htcondor, lsf, pbs, sge, slurm
from kettle_services.ce.domain.batch.listed import BrokenAnswerError
from kettle_services.ce.domain.batch.script import left
from kettle_wire.batch import BatchEnd, BatchRequest, BatchState, EndCause

_DATA = Path(__file__).parent / "data"
_Q, _H, _R, _S = BatchState.QUEUED, BatchState.HELD, BatchState.RUNNING, BatchState.SUSPENDED
_UNKNOWN = None

_End = tuple[EndCause, int | None, int | None]


def _said(state: BatchState | None, end: BatchEnd | None) -> BatchState | _End | None:
    return state if end is None else (end.cause, end.exit_code, end.signal)


def _exit(code: int) -> _End:
    return EndCause.EXITED, code, None


def _by(cause: EndCause) -> _End:
    return cause, None, None


def test_openpbs() -> None:
    """Each letter and exit status of OpenPBS."""
    found = {each.id: _said(each.state, each.end) for each in pbs.jobs((_DATA / "openpbs.json").read_text())}
    assert {
        "101.pbs": _Q, "102.pbs": _H, "103.pbs": _R, "104.pbs": _R, "105.pbs": _S, "106.pbs": _S, "107.pbs": _Q,
        "108.pbs": _Q, "109.pbs": _UNKNOWN, "110.pbs": _exit(0), "111.pbs": _exit(3), "112.pbs": _by(EndCause.REMOVED),
        "113.pbs": _by(EndCause.TIME), "114.pbs": _by(EndCause.MEMORY), "115.pbs": _by(EndCause.NOT_STARTED),
        "116.pbs": (EndCause.EXITED, None, 9), "117.pbs": _by(EndCause.REMOVED), "118[].pbs": _R, "119.pbs": _exit(0),
    } == found  # fmt: skip
    used = next(each.end for each in pbs.jobs((_DATA / "openpbs.json").read_text()) if each.id == "110.pbs")
    assert used is not None
    assert (65.0, 2048) == (used.cpu, used.memory_kib)


def test_torque() -> None:
    """Each letter and exit status of Torque, which writes XML."""
    found = {
        each.name[-3:]: _said(each.state, each.end) for each in pbs.jobs((_DATA / "torque.xml").read_text())
    }
    assert {
        "201": _Q, "202": _H, "203": _R, "204": _exit(0), "205": _by(EndCause.REMOVED), "206": _by(EndCause.TIME),
        "207": _by(EndCause.MEMORY), "208": _exit(2), "209": _S, "210": _R, "211": _Q, "212": _Q,
    } == found  # fmt: skip


def test_lsf() -> None:
    """Each word and reason of LSF; a job whose host does not answer is not over."""
    found = {each.id: _said(each.state, each.end) for each in lsf.jobs((_DATA / "lsf.json").read_text())}
    assert {
        "301": _Q, "302": _H, "303": _R, "304": _S, "305": _S, "306": _R, "307": _Q, "308": _UNKNOWN, "309": _UNKNOWN,
        "310": _exit(0), "311": _exit(3), "312": _by(EndCause.TIME), "313": _by(EndCause.MEMORY),
        "314": _by(EndCause.REMOVED), "315": _by(EndCause.REMOVED), "316": _by(EndCause.PREEMPTED),
        "317": (EndCause.EXITED, None, 11), "318": _by(EndCause.NODE), "319": _by(EndCause.EXITED),
    } == found  # fmt: skip


def test_grid_engine() -> None:
    """Letters of Grid Engine in all their combinations, held before queued."""
    found = {each.id: each.state for each in sge.jobs((_DATA / "grid_engine.xml").read_text())}
    assert {
        "401": _R, "402": _R, "403": _R, "404": _S, "405": _S, "406": _S, "407": _R, "408": _Q, "409": _H, "410": _H,
        "411": _H, "412": _UNKNOWN,
    } == found  # fmt: skip


def test_books_of_grid_engine() -> None:
    """
    What ended a job that was killed follows from what it had asked for; one that is run again has not ended.  What fails after
    its end (an epilog) does not make it one that never began.
    """
    books = sge.accounted((_DATA / "grid_engine_books.txt").read_text())
    assert {
        "421": _exit(3), "422": _by(EndCause.REMOVED), "423": _by(EndCause.TIME), "424": _by(EndCause.MEMORY),
        "425": _by(EndCause.NOT_STARTED), "427": _by(EndCause.TIME), "428": _exit(0), "429": _exit(2), "430": _exit(0),
        "431": _exit(0), "432": _exit(1), "433": _by(EndCause.REMOVED),
    } == {number: _said(None, end) for number, (_, end) in books.items()}  # fmt: skip
    assert 3.0 == books["421"][1].ended - books["421"][1].began
    assert "failed 15  : in epilog" == books["431"][1].words


@pytest.mark.parametrize(
    ("word", "reason", "state"),
    [
        ("PENDING", "JobHeldUser", _H),
        ("PENDING", "JobHeldAdmin", _H),
        ("PENDING", "Priority", _Q),
        ("REQUEUE_HOLD", "None", _H),
        ("SPECIAL_EXIT", "None", _H),
        ("REQUEUED", "None", _Q),
        ("CONFIGURING", "None", _Q),
        ("COMPLETING", "None", _R),
        ("STOPPED", "None", _R),
        ("SUSPENDED", "None", _S),
        ("CANCELLED by 1000", "None", BatchState.ENDED),
        ("CANCELLED+", "None", BatchState.ENDED),
        ("LAUNCH_FAILED", "None", BatchState.ENDED),
        ("", "None", _UNKNOWN),
        ("EN ATTENTE", "None", _UNKNOWN),
    ],
)
def test_words_of_slurm(word: str, reason: str, state: BatchState | None) -> None:
    """Held is not queued, and what is not known is nothing."""
    assert state is slurm.state_of(word, reason)


_STATES: dict[str, Any] = json.loads((_DATA / "states.json").read_text())


@pytest.mark.parametrize("system", ["slurm", "pbs", "lsf", "sge"])
def test_every_word_has_its_meaning(system: str) -> None:
    """
    Each word of each manual is the state that the table says, or is known to say nothing; no adapter knows another one.
    """
    meanings: dict[str, Callable[[str], BatchState | None]] = {
        "slurm": lambda word: slurm.state_of(word, "None"),
        "pbs": pbs.STATES.get,
        "lsf": lsf.STATES.get,
        "sge": sge.state_of,
    }
    state_of = meanings[system]
    table = {word: state for state, words in _STATES[system].items() for word in words}
    assert {word: None if state == "unknown" else state for word, state in table.items()} == {
        word: state_of(word) for word in table
    }
    known = {"slurm": slurm.STATES, "pbs": pbs.STATES, "lsf": lsf.STATES}.get(system, {})
    assert set() == set(known) - set(table)


@pytest.mark.parametrize("word", list(_STATES["slurm"]["ended"]))
def test_every_end_of_slurm_has_its_cause(word: str) -> None:
    """The books say the same as the list."""
    line = f"1|n|{word}|3:0|10|20|00:01|"
    listed = f"1|{word}|None|n|node|{3 << 8}|10|20|"
    (seen,) = slurm.jobs(listed)
    booked = slurm.accounted(line)["1"][1]
    assert seen.end is not None
    assert booked is not None
    assert _STATES["slurm"]["ended"][word] == seen.end.cause == booked.cause
    assert (3 if seen.end.cause is EndCause.EXITED else None) == seen.end.exit_code == booked.exit_code


def test_answers_have_every_word() -> None:
    """What the adapters are tried with has each state of OpenPBS, Torque, LSF and Grid Engine."""
    letters = {word for words in _STATES["pbs"].values() for word in words}
    openpbs = set(re.findall(r'"job_state": "(.)"', (_DATA / "openpbs.json").read_text()))
    torque = set(re.findall("<job_state>(.)<", (_DATA / "torque.xml").read_text()))
    assert letters - {"C"} == openpbs
    assert set("QHRECSWT") == torque
    words = {word for words in _STATES["lsf"].values() for word in words}
    assert words == set(re.findall(r'"STAT": "(\w+)"', (_DATA / "lsf.json").read_text()))


def test_every_reason_of_lsf_is_a_cause() -> None:
    """Each word by which it says why it has ended a job; the exit code of such a job is not its program's."""
    for cause, reasons in _STATES["lsf ends"].items():
        for reason in reasons:
            fields = {
                "JOBID": "1",
                "STAT": "EXIT",
                "JOB_NAME": "n",
                "EXIT_CODE": "137",
                "EXIT_REASON": f"{reason}: words",
            }
            (job,) = lsf.jobs(json.dumps({"RECORDS": [fields]}))
            assert (reason, _by(EndCause(cause))) == (reason, _said(job.state, job.end))


def test_every_exit_status_of_pbs_is_a_cause() -> None:
    """
    Those by which the server says that it has ended a job, or could not start it, and those of programs; above is a
    signal.
    """
    for cause, statuses in _STATES["pbs ends"].items():
        for status in statuses:
            job = {"Job_Name": "n", "job_state": "F", "stime": "x", "Exit_status": status}
            (found,) = pbs.jobs(json.dumps({"Jobs": {"1.pbs": job}}))
            assert found.end is not None
            assert (status, cause) == (status, found.end.cause)
            assert (status if cause == "exited" else None) == found.end.exit_code
    for cause, statuses in _STATES["torque ends"].items():
        for status in statuses:
            about = f"<Job_Id>1.t</Job_Id><job_state>C</job_state><start_time>1</start_time><exit_status>{status}</exit_status>"
            (found,) = pbs.jobs(f"<Data><Job>{about}</Job></Data>")
            assert found.end is not None
            assert (status, cause) == (status, found.end.cause)
    for signal in (1, 6, 9, 11):
        job = {"Job_Name": "n", "job_state": "F", "stime": "x", "Exit_status": 256 + signal}
        (found,) = pbs.jobs(json.dumps({"Jobs": {"1.pbs": job}}))
        assert (EndCause.EXITED, None, signal) == _said(found.state, found.end)


def test_half_an_answer_is_none() -> None:
    """What was cut on its way, or is something else, is refused, and never a shorter list."""
    for name, jobs in (
        ("openpbs.json", pbs.jobs),
        ("torque.xml", pbs.jobs),
        ("lsf.json", lsf.jobs),
        ("grid_engine.xml", sge.jobs),
    ):
        text = (_DATA / name).read_text()
        for cut in (text[: len(text) // 2], text[: -len("</Data>\n") - 1], "Welcome to the login node"):
            with pytest.raises(BrokenAnswerError):
                list(jobs(cut))


@pytest.mark.parametrize("text", ["", "\n", "code", "code 0 1", "word 0 1 2", "code x 1 2"])
def test_a_word_that_was_cut_is_none(text: str) -> None:
    """What a job leaves of itself counts when it is whole."""
    assert None is left(text)
    assert BatchEnd(cause=EndCause.EXITED, exit_code=3, began=10.0, ended=12.0, cpu=61.5) == left(
        "code 3 10 12\n0m0.0s 0m0.0s\n1m1.0s 0m0.5s\n"
    )


def test_what_a_login_prints_changes_nothing() -> None:
    """Lines before an answer are passed over, also those that look like one."""
    motd = "Welcome!\nJobs: | 1 | RUNNING |\n"
    for name, jobs in (("openpbs.json", pbs.jobs), ("torque.xml", pbs.jobs), ("grid_engine.xml", sge.jobs)):
        text = (_DATA / name).read_text()
        assert len(list(jobs(text))) == len(list(jobs(motd + text)))
    assert "12" == slurm.submitted("Welcome to cluster 9\n12\n")
    assert "12;other" == slurm.submitted("12;other\n")
    assert "12" == sge.submitted("Your job is welcome\n12.1-3:1\n")
    assert "12.pbs.example.org" == pbs.submitted("quota: 3\nhello\n12.pbs.example.org\n")
    assert "12" == lsf.submitted("hello\nJob <12> is submitted to queue <normal>.\n")
    assert None is slurm.submitted("Submitted batch job\n")


def test_htcondor() -> None:
    """
    Each status; a job that its own description has removed was held for too much memory, or ran too long, or did not start.
    """
    text = (_DATA / "htcondor.json").read_text()
    found = {each.id: _said(each.state, each.end) for each in htcondor.jobs(text)}
    assert {
        "101": _Q, "102": _R, "103": _R, "104": _S, "105": _H, "106": _exit(3), "107": (EndCause.EXITED, None, 9),
        "108": _by(EndCause.REMOVED), "109": _by(EndCause.MEMORY), "110": _by(EndCause.TIME), "111": _by(EndCause.NOT_STARTED),
        "112": _by(EndCause.TIME), "113": _UNKNOWN,
    } == found  # fmt: skip
    said = {each.id: each for each in htcondor.jobs(f"a word of the login\n{text}")}
    assert ("node7.site", "kintent102") == (said["102"].host, said["102"].name)
    end = said["106"].end
    assert end is not None
    assert (1_700_000_000.0, 1_700_000_060.0, 3.0, 2500) == (end.began, end.ended, end.cpu, end.memory_kib)
    assert [] == list(htcondor.jobs(""))
    for broken in (text[:400], "no JSON"):
        with pytest.raises(BrokenAnswerError):
            list(htcondor.jobs(broken))


@pytest.mark.parametrize(
    ("earlier", "cause"),
    [
        ({}, EndCause.TIME),
        ({"LastHoldReasonCode": 1, "LastHoldReason": "via condor_hold (by user ada)"}, EndCause.TIME),
        ({"LastHoldReasonCode": 13, "LastHoldReason": "Transfer input files failure"}, EndCause.TIME),
        ({"LastJobStatus": 5, "LastHoldReasonCode": 34}, EndCause.MEMORY),
        ({"LastJobStatus": 5, "LastHoldReasonCode": 13}, EndCause.NOT_STARTED),
    ],
)
def test_an_earlier_hold_is_no_reason_of_an_end(earlier: dict[str, object], cause: EndCause) -> None:
    """
    A job that ran too long has done so although somebody had held and released it before: it does not run again.
    """
    removed = "The job attribute PeriodicRemove expression '...' evaluated to TRUE"
    ad = {"ClusterId": 1, "JobStatus": 3, "LastJobStatus": 2, "KettleIntent": "k", "RemoveReason": removed}
    (found,) = htcondor.listed([{**ad, **earlier}])
    assert _by(cause) == _said(found.state, found.end)


def test_what_htcondor_is_told() -> None:
    """A description in which nothing of a job is a line of its own."""
    request = BatchRequest(cpus=4, memory=2000, wall=60, gpus=1, queue="long", account="group_physics.ada")
    said = htcondor.description("kaaaaaaaaaaaaaa", "/there/k", request, ['+Site = "here"']).splitlines()
    assert {
        "arguments = /there/k/.kettle/batch.sh", 'My.KettleIntent = "kaaaaaaaaaaaaaa"', "request_cpus = 4", "request_memory = 2000",
        "request_gpus = 1", "accounting_group = group_physics.ada", 'My.BatchQueue = "long"', '+Site = "here"',
    } <= set(said)  # fmt: skip
    assert "queue" == said[-1]
    assert "time() - EnteredCurrentStatus > 60" in next(line for line in said if "periodic_remove" in line)
    whole = htcondor.description("k", "/d", BatchRequest(memory=5, whole_node=True), [])
    assert "request_cpus = TotalSlotCpus\nperiodic_remove" in whole
    assert "request_memory = TotalSlotMemory\n" in whole
    with pytest.raises(htcondor.UnwritableError):
        htcondor.description("k", "/d", BatchRequest(nodes=2), [])
    assert ["7", None] == [htcondor.submitted("7.0 - 7.0\n"), htcondor.submitted("ERROR: no\n")]
