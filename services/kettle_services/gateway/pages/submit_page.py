"""The form with which jobs are submitted: checked as it is typed, and kept after an error."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal

import msgspec

from kettle.bus.ports import BusError
from kettle.client import ClientError
from kettle.jobs.lines import lines_of
from kettle.submit.known_attributes import KnownAttributes
from kettle_services.gateway.pages.descriptions import description_like
from kettle_services.gateway.pages.page import Form, Led, Link, Page, Shown
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.rest.application import Asked, refusal_of
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.rest.jobs import GET_JOB, SUBMIT_JOBS, GetJob, Job, JobName, SubmitJobs, SubmittedJobs
from kettle_wire.rest.problem import ProblemCode
from kettle_wire.rest.route import Moment

TemplateName = Literal["simple", "sweep", "container", "gpu"]
TEMPLATES: Final[Mapping[TemplateName, str]] = {
    "simple": """executable     = /bin/sleep
arguments      = 60
output         = sleep.out
error          = sleep.err
request_cpus   = 1
request_memory = 128
queue
""",
    "sweep": """# One job for each item.
executable     = /bin/echo
arguments      = item $(Item)
output         = echo.$(Process).out
error          = echo.$(Process).err
request_cpus   = 1
request_memory = 128
queue Item in 1, 2, 3, 5, 8
""",
    "container": """container_image = docker://debian:stable
executable      = /usr/bin/env
output          = env.out
error           = env.err
request_cpus    = 1
request_memory  = 512
queue
""",
    "gpu": """executable     = /usr/bin/nvidia-smi
output         = gpu.out
error          = gpu.err
request_cpus   = 1
request_gpus   = 1
request_memory = 1024
queue
""",
}
_LINE: Final = re.compile(r"line (\d+)")


class ShowSubmit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What can be asked of the page."""

    template: TemplateName = "simple"
    like: JobName | None = None
    """Begin with what this job was submitted with."""
    as_of: Moment | None = None


class SubmitFields(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is sent."""

    text: Annotated[str, msgspec.Meta(max_length=1 << 20)] = ""


SUBMIT: Final = Page(
    "/submit",
    "Submit",
    template="submit.html",
    parameters=ShowSubmit,
    level="WRITE",
    link=Link("Jobs", 6),
    only_now=True,
)
SEND: Final = Form("/submit", "Submit", fields=SubmitFields, template="submit.html")
CHECK: Final = Form("/submit/check", "Submit", fields=SubmitFields, template="submit.html")
"""The answer to a script is only what is said of the description."""


class SubmitView(msgspec.Struct, frozen=True, kw_only=True):
    """The page."""

    text: str
    trouble: str = ""
    """What is wrong with it."""
    line: int | None = None
    """Where, from 1."""
    shown: str = ""
    """That line."""
    count: int | None = None
    """How many jobs it makes."""
    templates: Sequence[str] = tuple(TEMPLATES)
    like: str = ""


class SubmitPage:
    """Shows it, and submits."""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions
        self._known = KnownAttributes()

    async def show(self, asked: Asked) -> Shown:
        """An example, or a job that is to be run again."""
        wanted: ShowSubmit = asked.parameters
        if wanted.like is None:
            return Shown(SubmitView(text=TEMPLATES[wanted.template]))
        job = await self._questions.ask(asked, GET_JOB, GetJob(id=wanted.like), Job)
        return Shown(SubmitView(text=description_like(job.attributes or {}, self._known), like=wanted.like))

    async def check(self, asked: Asked) -> Shown:
        """What would become of a description, which nothing is done with."""
        is_part = "HX-Request" in asked.request.headers
        return Shown(await self._tried(asked), template="submit_check.html" if is_part else "")

    async def send(self, asked: Asked) -> Shown | Led:
        """Submit; what is wrong is said above what was typed."""
        tried = await self._tried(asked)
        if tried.trouble:
            return Shown(tried, status=422)
        text = asked.body.text
        try:
            made = await self._questions.ask(asked, SUBMIT_JOBS, SubmitJobs(), SubmittedJobs, body=text)
        except (RequestRefused, ClientError, BusError) as error:
            refusal = refusal_of(asked.request, error)
            if refusal is None:
                raise
            return Shown(_wrong(text, str(refusal)), status=refusal.status)
        return Led(f"/clusters/{made.cluster}@{made.schedd}", {"at_least": made.position})

    async def _tried(self, asked: Asked) -> SubmitView:
        text: str = asked.body.text
        try:
            made = await self._questions.ask(
                asked, SUBMIT_JOBS, SubmitJobs(dry_run=True), SubmittedJobs, body=text
            )
        except RequestRefused as refusal:
            if refusal.code == ProblemCode.UNAVAILABLE:
                raise
            return _wrong(text, str(refusal))
        return SubmitView(text=text, count=made.count)


def _wrong(text: str, said: str) -> SubmitView:
    said = said.removeprefix("body, ")
    found = _LINE.search(said)
    lines = lines_of(text)
    line = int(found[1]) if found and 0 < int(found[1]) <= len(lines) else None
    return SubmitView(text=text, trouble=said, line=line, shown=lines[line - 1] if line else "")
