"""Why a job is where it is: the schedd's and the negotiator's knowledge as sentences."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from kettle.client import JobId, WhyReport
from kettle.client.explanations import job_files, match_analysis, moved_files, policies, timeline
from kettle.client.explanations.match_analysis import Outlook
from kettle.jobs.nodes import node_count
from kettle.terminal.quantities import counted, duration, size
from kettle_wire.ads.types import Ad, Expr, Scalar
from kettle_wire.codes import DagStatus, HoldCode, JobStatus, Universe
from kettle_wire.commands.negotiator import Analysis, Verdict
from kettle_wire.commands.outlooks import OutlookKind, PoolOutlook
from kettle_wire.commands.schedd import Explanation
from kettle_wire.events import FactorySubmitted
from kettle_wire.events.cycle import Clause, Rejection

_WELL: Final = "exited with code 0"
_AT_HOME: Final = "It runs on the machine of its schedd, without negotiation: it is about to start."
_UNMATCHED: Final[Mapping[object, str]] = {
    Universe.SCHEDULER: _AT_HOME,
    Universe.LOCAL: _AT_HOME,
    Universe.GRID: "It is for a batch system, without negotiation: it is about to be submitted there.",
}
"""By JobUniverse, of jobs that are offered to no machine of the pool."""
_MENDS: Final[Mapping[int, str]] = {
    HoldCode.UserRequest: "see whether the reason for which it was held by hand is gone",
    HoldCode.FailedToCreateProcess: "see whether the program exists and can be run there",
    HoldCode.TransferOutputError: "see whether the files that it is to bring back are there and where they go can be written",
    HoldCode.TransferInputError: "see whether the files that it takes along exist",
    HoldCode.SubmittedOnHold: "see whether all that it was to wait for is there",
    HoldCode.MaxTransferInputSizeExceeded: "make its input smaller",
    HoldCode.MaxTransferOutputSizeExceeded: "make its output smaller",
    HoldCode.JobOutOfResources: "it needed more than it asked for: ask for more (kettle edit {job} RequestMemory=MIB)",
    HoldCode.InvalidDockerImage: "see whether the name of the image is right",
}
"""What to do about a hold, by HoldReasonCode."""
_WAITS: Final = (
    "It waits for somebody: {mend}, then kettle release {job}, or take it out with kettle rm {job}."
)
_SPOOLS: Final = (
    "It waits for its input files, which the command that submitted it sends to the access point; if that has given up, "
    "kettle rm {job} and submit it again."
)
_NO_SLOT: Final = "There is no slot in the pool: see kettle status, and start a machine."
_STILL: Final = "It is still in the queue: LeaveJobInQueue keeps it, or its end is being worked on; kettle rm {job} takes it out."
_ORDERED: Final = {
    "suspend": "It goes on with kettle continue {job}, as far as the policy of its machine lets it.",
    "vacate": "It has been asked to leave its machine and may take its time; kettle vacate --fast {job} ends it at once.",
    "vacate_fast": "It has been told to leave its machine at once.",
}
"""JobStatus."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What `kettle why` says: the first sentence is the answer, the others explain it."""

    job: str
    status: str
    sentences: list[str]
    clauses: list[Clause] = []
    slots: int = 0
    """How many slots the clauses were tried on."""
    rejection: Rejection | None = None
    """What is on record of the last negotiation."""
    analysis: Analysis | None = None
    """The job against all machines as they are now."""
    pools: list[PoolOutlook] = []
    """What pools of workers do about it, the most promising first."""
    outlook: Outlook | None = None
    """
    By that: some slot could take one `now`; some may `when` they are free or what they wait for has come; or `never`, unless
    the job is edited or the pool changes.
    """


def answer(report: WhyReport, *, now: float, files: bool = True) -> Answer:
    """
    The answer to why a job is where it is at `now`; with `files` it quotes files of the job, so only where this process may read no
    more than who asks.
    """
    explanation = report.explanation
    if report.unmade:
        sentences = [f"Job {report.job} is not in the queue yet: {_stripped(report.unmade)}."]
        return Answer(job=str(report.job), status="unmade", sentences=sentences)
    if explanation is None:
        return _gone(report, files=files)
    ad = explanation.ad
    since = _number(ad, "EnteredCurrentStatus") or _number(ad, "QDate")
    lasting = duration(now - since) if since else "some time"
    match explanation.status:
        case "held":
            told = _held(report.job, explanation, lasting, files=files)
            first, *others = told.sentences
            return msgspec.structs.replace(told, sentences=[first, *_files(report), *others])
        case "running":
            return _running(report.job, explanation, lasting)
        case "idle":
            told = _idle(report, explanation, lasting, now)
            return _with_outlooks(told, report, now) if report.outlooks else told
        case status:
            because = f": {_stripped(explanation.reason)}" if explanation.reason else ""
            return Answer(
                job=str(report.job),
                status=status,
                sentences=[f"Job {report.job} is {status}{because}.", _still(report.job, explanation.ad)],
            )


def _with_outlooks(told: Answer, report: WhyReport, now: float) -> Answer:
    """With what pools of workers do about it."""
    from kettle.client.explanations.worker_pools import outlook_sentence  # only where there are such pools

    more = [f"{sentence[0].upper()}{sentence[1:]}." for sentence in
            (outlook_sentence(each, now=now) for each in report.outlooks)]  # fmt: skip
    first, *others = told.sentences
    if any(each.machines or (each.leases and each.kind is OutlookKind.PLANNED) for each in report.outlooks):
        # A machine is on its way: that is the answer, and how it is without it comes after.
        sentences = [first, *more, *(each for each in others if each != _NO_SLOT)]
    else:
        sentences = [first, *others, *more]
    return msgspec.structs.replace(told, sentences=sentences, pools=report.outlooks)


def _still(job: JobId, ad: Ad) -> str:
    if ad.get("KeptInQueue") is not True:
        return _STILL.format(job=job)
    force = "--forcex " if ad.get("JobStatus") == JobStatus.REMOVED else ""
    return (
        f"It has ended, and its LeaveJobInQueue keeps it in the queue; kettle rm {force}{job} takes it out."
    )


def _gone(report: WhyReport, *, files: bool) -> Answer:
    if all(isinstance(one.event, FactorySubmitted) for one in report.events):
        sentence = f"Job {report.job} was never made: its cluster was removed before its turn came."
        return Answer(job=str(report.job), status="removed", sentences=[sentence])
    *_, last = timeline.lines(report.events)
    verb = "" if last.sentence.startswith(("exited", "killed")) else "was "
    sentences = [f"Job {report.job} has left the queue: it {verb}{last.sentence}."]
    if files and report.ended is not None and (how := job_end(report.ended)):
        sentences += job_files.shown(report.ended, failed=how != _WELL)
    if report.ended is not None:
        sentences += _workflow(report.ended)
    sentences += _files(report)
    return Answer(job=str(report.job), status=last.name, sentences=sentences)


def _files(report: WhyReport) -> list[str]:
    """What is recorded of the files of its last attempt that moved some by URL."""
    attempts = moved_files.files_of(each.event for each in report.events)
    return list(moved_files.sentences(attempts[-1].moved)) if attempts else []


def _workflow(ad: Ad) -> Iterator[str]:
    """What has become of the DAG that a job has run."""
    status = ad.get("DAG_Status")
    if isinstance(status, int) and status in set(DagStatus):
        yield (
            f"Its DAG is over: {DagStatus(status).name.lower()}; kettle dag show {ad.get('ClusterId')} tells how its nodes have ended."
        )


def job_end(ad: Ad) -> str:
    """How the program of a job ended last, as far as it did."""
    if isinstance(signal := ad.get("ExitSignal"), int):
        return f"was killed by signal {signal}"
    code = ad.get("ExitCode")
    return f"exited with code {code}" if isinstance(code, int) else ""


def _held(job: JobId, explanation: Explanation, lasting: str, *, files: bool) -> Answer:
    ad, code = explanation.ad, int(_number(explanation.ad, "HoldReasonCode"))
    said = [f"Job {job} has been held for {lasting}: {_stripped(explanation.reason)} (code {code})."]
    if code == HoldCode.SpoolingInput:
        return Answer(job=str(job), status="held", sentences=[*said, _SPOOLS.format(job=job)])
    if how := job_end(ad):
        said.append(f"Its program {how} before.")
        said += job_files.shown(ad, failed=how != _WELL) if files else ()
    elif files and code == HoldCode.TransferOutputError:
        said += job_files.shown(ad, failed=True)
    said += policies.sentences(explanation.policies)
    mend = _MENDS.get(code, "mend the cause").format(job=job)
    if policies.releases(explanation.policies):
        said.append(
            f"It need not wait for that: {mend}, then kettle release {job}; kettle rm {job} takes it out."
        )
    else:
        said.append(_WAITS.format(mend=mend, job=job))
    return Answer(job=str(job), status="held", sentences=said)


def _running(job: JobId, explanation: Explanation, lasting: str) -> Answer:
    place = explanation.ad.get("RemoteHost", "a claimed slot")
    started = "JobCurrentStartExecutingDate" in explanation.ad
    doing = "runs on" if started else "is being started on"
    if explanation.ad.get("JobStatus") == JobStatus.SUSPENDED:
        by_owner = explanation.ordered == "suspend"
        doing = "is suspended by its owner on" if by_owner else "is suspended by the policy of"
    look = f"Look at its output with kettle tail {job}, or beside it with kettle ssh {job}."
    if explanation.ad.get("JobUniverse") == Universe.GRID:
        look = _in_batch(explanation.ad)
    elif not started:
        look = "Its files are being moved and its program started; a job that cannot start is tried again, or held with the reason."
    if explanation.ordered:
        look = _ORDERED[explanation.ordered].format(job=job)
    said = [f"Job {job} {doing} {place}, for {lasting} now.", look]
    said += policies.sentences(policies.to_come(explanation.policies, explanation.ad))
    return Answer(job=str(job), status="running", sentences=said)


def _in_batch(ad: Ad) -> str:
    """Of a job that a batch system has."""
    if not (name := ad.get("GridJobId")):
        return "It is being submitted to the batch system."
    said = f", and says that it is {status}" if (status := ad.get("GridJobStatus")) else ""
    return f"The batch system calls it {name}{said}; what it writes comes back when it has ended."


def _idle(report: WhyReport, explanation: Explanation, lasting: str, now: float) -> Answer:
    job = str(report.job)
    said = [f"Job {job} has been idle for {lasting}."]
    if explanation.reason:
        said.append(f"The schedd says: {_stripped(explanation.reason)}.")
    said += policies.sentences(policies.to_come(explanation.policies, explanation.ad))
    if explanation.ad.get("JobUniverse") in _UNMATCHED:
        if not explanation.reason:
            said.append(_UNMATCHED[explanation.ad["JobUniverse"]])
        return Answer(job=job, status="idle", sentences=said)
    said += _together(explanation.ad)
    verdict = report.verdict
    if verdict is None and explanation.autocluster is None and explanation.reason:
        return Answer(job=job, status="idle", sentences=said)
    if verdict is None:
        trouble = report.trouble or "it belongs to no group of jobs that is being negotiated for"
        said.append(f"What the negotiator thinks of it is not known: {trouble}.")
        return Answer(job=job, status="idle", sentences=said)
    when = f"cycle {verdict.cycle}, {duration(now - verdict.at)} ago"
    if verdict.at < (_number(explanation.ad, "EnteredCurrentStatus") or _number(explanation.ad, "QDate")):
        when += ", before this one was waiting"
    if verdict.cycle is None:
        said.append("No negotiation has looked at jobs like this one yet; it waits for the next.")
    elif verdict.rejection is None:
        said.append(_given(verdict, when))
    elif verdict.analysis is None:
        return _rejected(job, said, verdict.rejection, explanation.ad, when)
    return _analysed(job, said, verdict, explanation.ad, when)


def _together(ad: Ad) -> list[str]:
    nodes = node_count(ad)
    return [f"It needs {nodes} slots at the same time, and gets all of them or none."] if nodes > 1 else []


def _given(verdict: Verdict, when: str) -> str:
    places = counted(sum(match.count for match in verdict.matches), "place")
    return f"The last negotiation ({when}) gave {places} to jobs like this one; it waits for its turn."


def _analysed(job: str, said: list[str], verdict: Verdict, ad: Ad, when: str) -> Answer:
    """By the present state, and the record of why none of what is possible was given."""
    analysis, rejection = verdict.analysis, verdict.rejection
    if analysis is None:
        return Answer(job=job, status="idle", sentences=said)
    refused = _refusals(analysis)
    never = [clause for clause in refused if clause.refuses >= analysis.slots]
    if analysis.fault:
        said.append(f"It can match no slot, whatever there is: {_stripped(analysis.fault)}.")
        said.append(
            f"Next: kettle edit {job} NAME=EXPRESSION gives it another value, by which it is matched from then on."
        )
    elif not analysis.slots:
        said.append(_NO_SLOT)
    elif analysis.able:
        if rejection is not None:
            said.append(f"The last negotiation ({when}) gave none to jobs like it.")
            said.extend(match_analysis.turn(rejection, analysis.able, analysis.slots, analysis.used_up))
        elif verdict.cycle is None:
            said.append(f"{analysis.able} of {counted(analysis.slots, 'slot')} could run it.")
        said.extend(match_analysis.by_themselves(analysis))
        said.extend(match_analysis.ways_out(analysis, ad))
    elif analysis.later:
        said.extend(match_analysis.by_themselves(analysis))
        said.extend(match_analysis.ways_out(analysis, ad))
    else:
        said.append(f"{_no_slot(analysis.slots)} {_quoted(never)}." if never else _none_of(analysis.slots))
        said.extend(_asked(never, ad))
        said.extend(match_analysis.ways_out(analysis, ad))
        said.append(match_analysis.next_steps(job, analysis))
    return Answer(
        job=job,
        status="idle",
        sentences=said,
        clauses=refused,
        slots=analysis.slots,
        rejection=rejection,
        analysis=analysis,
        outlook=match_analysis.outlook(analysis),
    )


def _refusals(analysis: Analysis) -> list[Clause]:
    return [
        Clause(side=one.side, text=one.text, refuses=one.asked - one.passes)
        for one in analysis.clauses
        if one.passes < one.asked
    ]


def _none_of(slots: int) -> str:
    return f"It can run on none of {counted(slots, 'slot')}: no clause refuses all of them, but together they do."


def _rejected(job: str, said: list[str], rejection: Rejection, ad: Ad, when: str) -> Answer:
    slots = rejection.slots
    never = [clause for clause in rejection.clauses if slots and clause.refuses >= slots]
    if slots == 0:
        said.append(f"The last negotiation ({when}) saw no slot at all: {_stripped(rejection.reason)}.")
    elif never:
        said.append(f"{_no_slot(slots)} {_quoted(never)} ({when}).")
        said.extend(_asked(never, ad))
        said.append(match_analysis.next_steps(job, None))
    else:
        said.append(
            f"The last negotiation ({when}) looked at {counted(slots, 'slot')}: {_stripped(rejection.reason)}."
        )
        said.extend(
            match_analysis.turn(rejection, rejection.able, slots) if rejection.able else [_shared(rejection)]
        )
    return Answer(
        job=job,
        status="idle",
        sentences=said,
        clauses=sorted(rejection.clauses, key=lambda clause: -clause.refuses),
        slots=slots,
        rejection=rejection,
    )


def _no_slot(slots: int) -> str:
    if slots == 1:
        return "It cannot run on the only slot: that is refused by"
    return f"It can run on none of {slots} slots: all are refused by"


def _shared(rejection: Rejection) -> str:
    if "busy" in rejection.reason:
        return "It waits for its turn: those that could run it are taken."
    return "No clause refuses all of them, but together they do."


def _asked(clauses: Sequence[Clause], ad: Ad) -> list[str]:
    """The job's side of the failing clauses in numbers."""
    text = " ".join(clause.text for clause in clauses)
    asked = [
        _amount(name, value) for name, value in ad.items() if name.startswith("Request") and name in text
    ]
    return [f"The job asks for {' and '.join(asked)}."] if asked else []


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
