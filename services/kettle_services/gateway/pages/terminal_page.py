"""The page of a terminal: a shell beside a job that runs."""

from typing import Final

import msgspec

from kettle_services.gateway.pages.page import Page, Shown
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.rest.application import Asked
from kettle_services.gateway.rest.command_lines import COMMAND_ATTRIBUTES, short_command
from kettle_wire.rest.jobs import GET_JOB, GetJob, Job, JobName
from kettle_wire.rest.route import Moment


class ShowTerminal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What can be asked of the page."""

    id: JobName
    as_of: Moment | None = None
    """Of a page of the past from which somebody comes; the terminal is one of now."""


TERMINAL: Final = Page(
    "/jobs/{id}/terminal",
    "Terminal of a job",
    template="terminal.html",
    parameters=ShowTerminal,
    level="WRITE",
    only_now=True,
)


class TerminalView(msgspec.Struct, frozen=True, kw_only=True):
    """The page."""

    job: Job
    name: str
    """`CLUSTER.PROC`."""
    command: str
    """What it runs."""


class TerminalPage:
    """Shows it."""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions

    async def show(self, asked: Asked) -> Shown:
        """Who may have it, and whether the job runs, is told by the access point when it is begun."""
        wanted: ShowTerminal = asked.parameters
        job = await self._questions.ask(
            asked, GET_JOB, GetJob(id=wanted.id, fields=[*COMMAND_ATTRIBUTES]), Job
        )
        name = f"{job.cluster}.{job.proc}"
        view = TerminalView(job=job, name=name, command=short_command(job.attributes or {}))
        return Shown(view, title=f"Terminal of job {name}")
