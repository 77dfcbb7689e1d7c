"""
condor_q -analyze and -better-analyze: why jobs are in their state, in HTCondor's format, from the log.

The text about a job is that of `kettle why`, and made in one place (`kettle.client.explanations.job_state`).
"""

import time
from collections.abc import Iterator, Sequence

from kettle.client import Client, WhyReport
from kettle.client.explanations.job_state import answer
from kettle.client.jobs.status import id_of
from kettle.client.short_lived import ShortLivedClient
from kettle.terminal.text import visible
from kettle_services.condor.printing.queue_table import head
from kettle_wire.ads.types import Ad, Expr
from kettle_wire.commands.negotiator import Analysis, Tried
from kettle_wire.jobs import JobId


def analysed(client: ShortLivedClient, jobs: Sequence[Ad], *, whole: bool) -> Iterator[str]:
    """
    The text about jobs; `whole`: with their requirements, and how many slots meet each part of them.

    Raises ClientError.
    """
    reports = client.run(lambda pool: _asked(pool, [id_of(ad) for ad in jobs]))
    yield head(client.pool) + "\n"
    for ad, report in zip(jobs, reports, strict=True):
        yield from told(ad, report, whole=whole, now=time.time())


async def _asked(pool: Client, jobs: Sequence[JobId]) -> list[WhyReport]:
    return [await pool.why(job) for job in jobs]


def told(ad: Ad, report: WhyReport, *, whole: bool, now: float) -> Iterator[str]:
    """The text about one job."""
    job = f"{report.job.cluster:03}.{report.job.proc:03}"
    said = answer(report, now=now)
    if whole:
        yield from _requirements(job, ad)
        if said.analysis is not None:
            yield from _conditions(job, said.analysis.clauses)
    yield f"{job}:  Job is {said.status}.\n\n"
    for sentence in said.sentences:
        yield f"{visible(sentence)}\n"
    yield "\n"
    if said.analysis is not None:
        yield from _summary(job, said.analysis)


def _requirements(job: str, ad: Ad) -> Iterator[str]:
    from kettle.classad import ClassAd, parse, references
    from kettle.classad.long_form import long_text

    requirements = ad.get("Requirements", True)
    text = requirements.expr if isinstance(requirements, Expr) else str(requirements).lower()
    yield f"The Requirements expression for job {job} is\n\n    {text}\n\n"
    own = ClassAd.from_wire(ad)
    names = sorted(references(parse(text), own).internal, key=str.lower)
    if names:
        yield f"Job {job} defines the following attributes:\n\n"
        for name in names:
            yield f"    {name} = {long_text(own, name)}\n"
        yield "\n"


def _conditions(job: str, clauses: Sequence[Tried]) -> Iterator[str]:
    """Of HTCondor's table each line, but as each part of the requirements is by itself."""
    for side, title in (
        ("job", f"The Requirements expression for job {job} reduces to these conditions:"),
        ("slot", f"The Requirements expressions of the slots reduce to these conditions for job {job}:"),
    ):
        own = [one for one in clauses if one.side == side]
        if own:
            yield f"{title}\n\n         Slots\nStep    Matched  Condition\n-----  --------  ---------\n"
            for number, one in enumerate(own):
                yield f"{f'[{number}]':<5} {one.passes:>9}  {one.text}\n"
            yield "\n"


def _summary(job: str, analysis: Analysis) -> Iterator[str]:
    yield f"{job}:  Run analysis summary ignoring user priority.  Of {analysis.slots} machines,\n"
    yield f"  {analysis.slots - analysis.able:>5} are rejected by your job's requirements, or reject your job by their own\n"
    yield f"  {analysis.able:>5} are able to run your job\n\n"
