"""The page of a job's files: what it has written last, all that it has left, and where these are had."""

from collections.abc import Sequence
from typing import Annotated, Final, Literal

import msgspec

from kettle_services.gateway.pages.page import Page, Shown
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.rest.application import Asked
from kettle_wire.rest.files import GET_TAIL, LIST_FILES, GetTail, JobFile, JobFiles, ListFiles, Tail
from kettle_wire.rest.jobs import GET_JOB, GetJob, Job, JobName


class ShowJobFiles(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What can be asked of the page."""

    id: JobName
    stream: Literal["stdout", "stderr"] = "stdout"
    find: Annotated[str, msgspec.Meta(max_length=1000)] = ""
    """Show only lines in which this is, in capitals or not."""
    after: Annotated[str, msgspec.Meta(max_length=4096)] = ""
    """List only files behind this path."""


JOB_FILES: Final = Page(
    "/jobs/{id}/files", "Files of a job", template="job_files.html", parameters=ShowJobFiles
)


class JobFilesView(msgspec.Struct, frozen=True, kw_only=True):
    """The page."""

    asked: ShowJobFiles
    job: Job
    name: str
    """`CLUSTER.PROC`."""
    tail: Tail | None
    text: str
    """What of it is shown."""
    lines: int
    """Of the text."""
    no_tail: str
    """Why there is none."""
    files: Sequence[JobFile]
    next: str | None
    no_files: str
    """Why they are not listed."""


class JobFilesPage:
    """Shows it."""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions

    async def show(self, asked: Asked) -> Shown:
        """The end of a stream, and the files; what cannot be had now is said in words."""
        wanted: ShowJobFiles = asked.parameters
        job = await self._questions.ask(asked, GET_JOB, GetJob(id=wanted.id), Job)
        of_tail = GetTail(id=job.id, stream=wanted.stream)
        tail, no_tail = await self._questions.ask_or_say(asked, GET_TAIL, of_tail, Tail)
        listed, no_files = await self._questions.ask_or_say(
            asked, LIST_FILES, ListFiles(id=job.id, after=wanted.after), JobFiles
        )
        lines = found_lines(tail, wanted.find) if tail else []
        name = f"{job.cluster}.{job.proc}"
        view = JobFilesView(
            asked=wanted,
            job=job,
            name=name,
            tail=tail,
            text="".join(lines),
            lines=len(lines),
            no_tail=no_tail,
            files=listed.files if listed else (),
            next=listed.next if listed else None,
            no_files=no_files,
        )
        return Shown(view, title=f"Files of job {name}")


def found_lines(tail: Tail, find: str) -> list[str]:
    """The lines of the end of a stream in which something is, without a first one that has no beginning."""
    lines = tail.text.split("\n")
    ended = [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    whole = ended[1:] if tail.offset and len(ended) > 1 else ended
    wanted = find.casefold()
    return [line for line in whole if wanted in line.casefold()]
