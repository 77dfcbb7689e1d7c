"""
Why a job is where it is: the schedd's and the negotiator's knowledge as sentences.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from kettle.cli import timeline
from kettle.cli.spans import counted, duration, size
from kettle.client import JobId, WhyReport
from kettle.wire.ads.types import Ad, Expr, Scalar
from kettle.wire.commands.negotiator import Verdict
from kettle.wire.commands.schedd import Explanation
from kettle.wire.events.cycle import Clause, Rejection

_SUSPENDED: Final = 7
"""JobStatus."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """
    What `kettle why` says: the first sentence is the answer, the others explain it.
    """

    job: str
    status: str
    sentences: list[str]
    clauses: list[Clause] = []
    slots: int = 0
    """How many slots the clauses were tried on."""


def answer(report: WhyReport, *, now: float) -> Answer:
    """
    The answer to why a job is where it is at `now`.
    """
    explanation = report.explanation
    if explanation is None:
        return _gone(report)
    ad = explanation.ad
    since = _number(ad, "EnteredCurrentStatus") or _number(ad, "QDate")
    lasting = duration(now - since) if since else "some time"
    match explanation.status:
        case "held":
            return _held(report.job, explanation, lasting)
        case "running":
            return _running(report.job, explanation, lasting)
        case "idle":
            return _idle(report, explanation, lasting, now)
        case status:
            return Answer(
                job=str(report.job),
                status=status,
                sentences=[
                    f"Job {report.job} is {status}{f': {explanation.reason}' if explanation.reason else ''}."
                ],
            )


def _gone(report: WhyReport) -> Answer:
    *_, last = timeline.lines(report.events)
    verb = "" if last.sentence.startswith("exited") else "was "
    sentence = f"Job {report.job} has left the queue: it {verb}{last.sentence}."
    return Answer(job=str(report.job), status=last.name, sentences=[sentence])


def _held(job: JobId, explanation: Explanation, lasting: str) -> Answer:
    code = explanation.ad.get("HoldReasonCode", 0)
    return Answer(
        job=str(job),
        status="held",
        sentences=[
            f"Job {job} has been held for {lasting}: {_stripped(explanation.reason)} (code {code}).",
            f"It waits for somebody: mend the cause, then kettle release {job}, or take it out with kettle rm {job}.",
        ],
    )


def _running(job: JobId, explanation: Explanation, lasting: str) -> Answer:
    place = explanation.ad.get("RemoteHost", "a claimed slot")
    started = "JobCurrentStartExecutingDate" in explanation.ad
    doing = "runs on" if started else "is being started on"
    if explanation.ad.get("JobStatus") == _SUSPENDED:
        doing = "is suspended by the policy of"
    return Answer(
        job=str(job), status="running", sentences=[f"Job {job} {doing} {place}, for {lasting} now."]
    )


def _idle(report: WhyReport, explanation: Explanation, lasting: str, now: float) -> Answer:
    job = str(report.job)
    said = [f"Job {job} has been idle for {lasting}."]
    if explanation.reason:
        said.append(f"The schedd says: {_stripped(explanation.reason)}.")
    verdict = report.verdict
    if verdict is None:
        trouble = report.trouble or "it belongs to no group of jobs that is being negotiated for"
        said.append(f"What the negotiator thinks of it is not known: {trouble}.")
        return Answer(job=job, status="idle", sentences=said)
    if verdict.cycle is None:
        said.append("No negotiation has looked at jobs like this one yet; it waits for the next.")
        return Answer(job=job, status="idle", sentences=said)
    when = f"cycle {verdict.cycle}, {duration(now - verdict.at)} ago"
    if verdict.rejection is not None:
        return _rejected(job, said, verdict.rejection, explanation.ad, when)
    said.append(_given(verdict, when))
    return Answer(job=job, status="idle", sentences=said)


def _given(verdict: Verdict, when: str) -> str:
    places = counted(sum(match.count for match in verdict.matches), "place")
    return f"The last negotiation ({when}) gave {places} to jobs like this one; it waits for its turn."


def _rejected(job: str, said: list[str], rejection: Rejection, ad: Ad, when: str) -> Answer:
    slots = rejection.slots
    never = [clause for clause in rejection.clauses if slots and clause.refuses >= slots]
    if slots == 0:
        said.append(f"The last negotiation ({when}) saw no slot at all: {_stripped(rejection.reason)}.")
    elif never:
        said.append(f"{_no_slot(slots)} {_quoted(never)} ({when}).")
        said.extend(_wanted(never, ad))
    else:
        said.append(
            f"The last negotiation ({when}) looked at {counted(slots, 'slot')}: {_stripped(rejection.reason)}."
        )
        said.append(_shared(rejection))
    return Answer(
        job=job,
        status="idle",
        sentences=said,
        clauses=sorted(rejection.clauses, key=lambda clause: -clause.refuses),
        slots=slots,
    )


def _no_slot(slots: int) -> str:
    if slots == 1:
        return "It cannot run on the only slot: that is refused by"
    return f"It can run on none of {slots} slots: all are refused by"


def _shared(rejection: Rejection) -> str:
    if "busy" in rejection.reason:
        return "It waits for its turn: those that could run it are taken."
    return "No clause refuses all of them, but together they do."


def _wanted(clauses: Sequence[Clause], ad: Ad) -> list[str]:
    """
    The job's side of the failing clauses in numbers, and the way out.
    """
    text = " ".join(clause.text for clause in clauses)
    asked = [
        _amount(name, value) for name, value in ad.items() if name.startswith("Request") and name in text
    ]
    said = [f"The job asks for {' and '.join(asked)}."] if asked else []
    return [
        *said,
        "Unless such a machine joins the pool the job waits for ever: remove it, and submit one that asks for what there is.",
    ]


def _amount(name: str, value: Scalar) -> str:
    resource = name.removeprefix("Request")
    match resource, value:
        case "Memory", int() | float():
            return f"{size(value * 1024)} of memory"
        case "Disk", int() | float():
            return f"{size(value)} of disk"
        case "Cpus", int() | float():
            return counted(int(value), "core")
        case _, Expr(expr=text):
            return f"{resource} = {text}"
        case _:
            return f"{resource} = {value}"


def _quoted(clauses: Sequence[Clause]) -> str:
    return " and by ".join(map(_clause, clauses[:3]))


def _clause(clause: Clause) -> str:
    request = clause.text.removesuffix(" does not fit")
    if clause.side == "job" and request != clause.text:
        return f"the request {request}, for which they have no room"
    return f"the clause {clause.text} of {'the job' if clause.side == 'job' else 'the slot'}"


def _number(ad: Ad, name: str) -> float:
    value = ad.get(name, 0)
    return value if isinstance(value, int | float) else 0.0


def _stripped(text: str) -> str:
    return text.rstrip(". ")
