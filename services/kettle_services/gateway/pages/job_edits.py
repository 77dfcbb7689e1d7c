"""What is changed of a job that waits, from its page, and what would be if it were."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Protocol

import msgspec

from kettle.submit.errors import PlacelessError
from kettle.submit.expressions import scalar
from kettle_services.gateway.pages.page import Form, Led, Shown
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.rest.application import Asked
from kettle_services.gateway.rest.command_lines import value_text
from kettle_services.gateway.rest.refusals import RequestRefused, refused_field
from kettle_wire.ads.types import Ad, Scalar
from kettle_wire.rest.jobs import EDIT_JOB, GET_JOB, EditJob, GetJob, Job, JobChange, JobName, Outcomes
from kettle_wire.rest.past import ASK_WHAT_IF, AskWhatIf, WhatIf
from kettle_wire.rest.problem import ProblemCode

_WAITS: Final = frozenset({"idle", "held"})
_USUAL: Final = {
    "RequestCpus": "Cores",
    "RequestMemory": "Memory, MiB",
    "RequestDisk": "Disk, KiB",
    "JobPrio": "Priority",
    "Requirements": "Requirements",
}
_Text = Annotated[str, msgspec.Meta(max_length=10_000)]


class EditedJob(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which job."""

    id: JobName


class EditFields(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="pascal"):
    """What is sent: what the attributes are to be, as ClassAd expressions."""

    request_cpus: _Text = ""
    request_memory: _Text = ""
    request_disk: _Text = ""
    job_prio: _Text = ""
    requirements: _Text = ""
    name: Annotated[str, msgspec.Meta(max_length=256)] = ""
    """Of another attribute."""
    value: _Text = ""
    tag: Annotated[str, msgspec.Meta(max_length=300)] = ""
    """Names the state that was shown."""
    only_ask: bool = False
    """Change nothing: say on how many slots the job could run then."""


EDIT: Final = Form("/jobs/{id}/edit", "Job", fields=EditFields, template="job.html", parameters=EditedJob)


class Editable(msgspec.Struct, frozen=True):
    """An attribute that the form has a field for."""

    name: str
    title: str
    value: str


def editable(job: Job) -> Sequence[Editable]:
    """What is usually changed; nothing of a job that does not wait."""
    if job.state not in _WAITS:
        return ()
    ad = job.attributes or {}
    return [Editable(name, title, value_text(ad.get(name, ""))) for name, title in _USUAL.items()]


def typed(fields: EditFields) -> Sequence[Editable]:
    """What was typed, for the same fields again."""
    said = msgspec.to_builtins(fields)
    return [Editable(name, title, said[name]) for name, title in _USUAL.items()]


def changes(fields: EditFields, ad: Ad) -> dict[str, Scalar]:
    """What is other than it was; raises RequestRefused: a value is no expression, or nothing is."""
    said = {name: text for name, text in msgspec.to_builtins(fields).items() if name in _USUAL}
    wanted = {name: text for name, text in said.items() if text and text != value_text(ad.get(name, ""))}
    if fields.name:
        wanted[fields.name] = fields.value
    if not wanted:
        raise refused_field("/body", "nothing is other than it was: change a value", status=422)
    return {name: _value(name, text) for name, text in wanted.items()}


def _value(name: str, text: str) -> Scalar:
    try:
        return scalar(text)
    except PlacelessError as error:
        raise refused_field(
            f"/body/{name}", f"the value of {name}, {text}, cannot be read: {error}", status=422
        ) from error


_REFUSED: Final[Mapping[str, str]] = {
    "bad_status": "is not in a state in which it can be changed",
    "too_large": "would have become too large",
}


_KEEPS: Final = frozenset({409, 412, 422})
"""With these it is said beside the fields why nothing was changed."""


class ShowsJob(Protocol):
    """The page of a job."""

    async def show_again(
        self, asked: Asked, job: JobName, typed: EditFields, refusal: RequestRefused | None, told: str = ""
    ) -> Shown:
        """As it is now, with what was typed, and why that was not done or what would be if it were."""
        ...


class JobEdits:
    """Makes them."""

    def __init__(self, questions: Questions, page: ShowsJob) -> None:
        """`page` shows the job again, with what was typed, where it was not changed."""
        self._questions = questions
        self._page = page

    async def edit(self, asked: Asked) -> Led | Shown:
        """Change the job, if it is still as it was shown; then its page, as it is by then."""
        try:
            if asked.body.only_ask:
                return await self._tried(asked)
            return await self._edited(asked)
        except RequestRefused as refusal:
            if refusal.status not in _KEEPS:
                raise
            return await self._page.show_again(asked, asked.parameters.id, asked.body, refusal)

    async def _tried(self, asked: Asked) -> Shown:
        which: EditedJob = asked.parameters
        job = await self._questions.ask(asked, GET_JOB, GetJob(id=which.id), Job)
        change = JobChange(attributes=changes(asked.body, job.attributes or {}))
        found = await self._questions.ask(asked, ASK_WHAT_IF, AskWhatIf(id=job.id), WhatIf, change)
        return await self._page.show_again(asked, which.id, asked.body, None, found.sentence)

    async def _edited(self, asked: Asked) -> Led:
        which: EditedJob = asked.parameters
        job, _ = await self._questions.ask_tagged(asked, GET_JOB, GetJob(id=which.id), Job, headers={})
        change = JobChange(attributes=changes(asked.body, job.attributes or {}))
        try:
            outcomes, _ = await self._questions.ask_tagged(
                asked, EDIT_JOB, EditJob(id=job.id), Outcomes, change, {"If-Match": asked.body.tag}
            )
        except RequestRefused as refusal:
            if refusal.status != 412:
                raise
            raise RequestRefused(
                412,
                ProblemCode.CHANGED,
                f"job {which.id} has changed since its page was shown: look at what it is now, and send the form again if you still mean it",
            ) from refusal
        for each in outcomes.outcomes:
            if each.outcome in _REFUSED:
                raise RequestRefused(
                    409, ProblemCode.CHANGED, f"job {which.id} {_REFUSED[each.outcome]}: nothing was changed"
                )
        return Led(f"/jobs/{job.id}", {"at_least": outcomes.position} if outcomes.position else {})
