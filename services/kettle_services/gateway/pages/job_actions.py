"""What is done to jobs from pages: asked once more where it cannot be undone, and undone where it can."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import parse_qsl

import msgspec

from kettle_services.gateway.pages.notices import MOST, Notice, packed, refused
from kettle_services.gateway.pages.page import Form, Led, Shown
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.pages.selections import Action, JobsForm, selection
from kettle_services.gateway.pages.wording import number
from kettle_services.gateway.rest.application import Asked
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.rest.jobs import ACT_ON_JOBS, ActOnJobs, JobSelection, Outcomes

_UNDONE: Final[Mapping[str, Action]] = {"hold": "release", "suspend": "continue"}
"""What takes an action back."""
_SAID: Final = {
    "hold": "put on hold",
    "release": "released",
    "remove": "removed",
    "vacate": "told to leave their machines",
    "suspend": "suspended",
    "continue": "continued",
}
_REFUSED: Final = {
    "not_found": "not there any more",
    "bad_status": "not in a state for it",
    "already_done": "like that already",
    "denied": "not yours",
    "too_large": "too large after it",
}
_UNGIVEN: Final = "via the pages"
"""The reason that is recorded where somebody gives none."""
MOST_UNDONE: Final = 5_000
"""Jobs that one form can name."""

ACT: Final = Form("/jobs/actions", "Jobs", fields=JobsForm, template="action.html")


class ActionView(msgspec.Struct, frozen=True, kw_only=True):
    """What is about to be done, or was."""

    form: JobsForm
    count: int
    """Jobs that it is about, or that it was done to."""
    said: str
    owners: Sequence[str]
    """Whose jobs a filter is about."""
    filter: str
    done: bool
    refused: Mapping[str, int] = {}
    """Jobs to which it was not done, by why."""
    undo: Action | None = None
    undo_ids: str = ""
    some: Sequence[str] = ()
    """Some of the jobs."""


class JobActions:
    """Carries them out."""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions

    async def act(self, asked: Asked) -> Shown | Led:
        """
        Do it, or say how many jobs it would be and ask again; what is wrong is said on the page where it was sent.
        """
        form: JobsForm = asked.body
        try:
            return await self._acted(asked, form)
        except RequestRefused as refusal:
            if not form.back:
                raise
            return _led(form, refused(refusal))

    async def _acted(self, asked: Asked, form: JobsForm) -> Shown | Led:
        chosen = selection(form, asked.person.name)
        undone_easily = form.action in _UNDONE or form.action in _UNDONE.values()
        if form.confirmed or (undone_easily and not form.all):
            return await self._done(asked, form, chosen)
        tried = await self._asked(asked, form, msgspec.structs.replace(chosen, expect=None), dry_run=True)
        view = ActionView(
            form=form,
            count=tried.count,
            said=_SAID[form.action],
            owners=chosen.owner,
            filter=chosen.filter,
            done=False,
            some=chosen.ids[:20],
        )
        return Shown(view, title=f"{form.action.capitalize()} {tried.count} jobs?")

    async def _done(self, asked: Asked, form: JobsForm, chosen: JobSelection) -> Shown | Led:
        answer = await self._asked(asked, form, chosen)
        outcomes = answer.outcomes
        changed = [each.id for each in outcomes if each.outcome == "done"]
        refused = Counter(_REFUSED[each.outcome] for each in outcomes if each.outcome != "done")
        notice = _notice(form, changed, refused)
        if form.back and len(packed(notice)) <= MOST:
            return _led(form, notice, answer.position)
        view = ActionView(
            form=form,
            count=len(changed),
            said=_SAID[form.action],
            owners=chosen.owner,
            filter=chosen.filter,
            done=True,
            refused=refused,
            undo=_UNDONE.get(form.action) if len(changed) <= MOST_UNDONE else None,
            undo_ids=",".join(changed),
            some=changed[:20],
        )
        return Shown(view, title="Done")

    async def _asked(
        self, asked: Asked, form: JobsForm, chosen: JobSelection, *, dry_run: bool = False
    ) -> Outcomes:
        parameters = ActOnJobs(action=form.action, dry_run=dry_run)
        if not chosen.reason:
            chosen = msgspec.structs.replace(chosen, reason=_UNGIVEN)
        return await self._questions.ask(asked, ACT_ON_JOBS, parameters, Outcomes, body=chosen)


def _notice(form: JobsForm, changed: Sequence[str], refused: Mapping[str, int]) -> Notice:
    """What was done to these jobs, and to how many it was not, by why."""
    count = len(changed)
    done = f"{number(count)} {'job was' if count == 1 else 'jobs were'} {_SAID[form.action]}."
    undo = _UNDONE.get(form.action, "") if changed else ""
    return Notice(
        said=[done] if changed else [],
        trouble=[f"{number(many)} {why}." for why, many in refused.items()],
        undo=undo,
        ids=",".join(changed) if undo else "",
        back=form.back,
    )


def _led(form: JobsForm, notice: Notice, position: str = "") -> Led:
    """Back to where the form was sent, which waits until what was done is visible."""
    path, _, query = form.back.partition("?")
    said = dict(parse_qsl(query))
    return Led(path, {**said, "at_least": position} if position else said, notice)
