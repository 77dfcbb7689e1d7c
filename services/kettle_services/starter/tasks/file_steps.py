"""What is fetched before the tasks, and sent after them: each file is a step of its own."""

import time
from collections.abc import Callable
from typing import Final

import msgspec

from kettle.execution.system.linux import boottime
from kettle.tasks.reading import artifact_name, fetched_images
from kettle.tasks.sequence import Happened, TimeLimit
from kettle.transfer.file_lists import name_of_url, shown
from kettle.transfer.plugin import Move
from kettle_services.starter.file_transfer.plugin_process import TransferError
from kettle_services.starter.hooks_and_transfers import HooksAndTransfers
from kettle_services.starter.tasks.steps import StepLog
from kettle_services.starter.tasks.task_files import TaskFiles, handled
from kettle_wire.tasks import Artifact, Output, Step, TaskList

_BETWEEN: Final = ","
"""Of names in a list of results, of which none can have it."""


class FileSteps:
    """
    The files of one job.  `heed` raises EndedError if the job was ordered to end.

    A file that cannot be had, or is not what it should be, is the job's fault; what else fails is the machine's, and ends the
    attempt with a TransferError.
    """

    def __init__(
        self,
        sandbox: str,
        files: TaskFiles,
        transfers: HooksAndTransfers,
        steps: StepLog,
        heed: Callable[[], None],
    ) -> None:
        self._sandbox = sandbox
        self._files = files
        self._transfers = transfers
        self._steps = steps
        self._heed = heed

    def fetch(self, listed: TaskList, limit: TimeLimit) -> Happened:
        """The images that come from URLs, then the artifacts; the first failure is the last step."""
        for url, sha256 in fetched_images(listed).items():
            began = boottime()
            good = self._image(url, sha256)
            limit.pulled(boottime() - began)
            if not good:
                return "failed"
        return "done" if all(self._artifact(artifact) for artifact in listed.artifacts) else "failed"

    def _image(self, url: str, sha256: str) -> bool:
        name = name_of_url(url)
        step = self._moved(Step(kind="fetch", outcome="done", name=shown(url)), Move(url, self._path(name)))
        return self._noted(handled(step, self._files.image(name, sha256)) if step.outcome == "done" else step)

    def _artifact(self, artifact: Artifact) -> bool:
        name, url = artifact_name(artifact), artifact.url
        step = self._moved(Step(kind="fetch", outcome="done", name=shown(url)), Move(url, self._path(name)))
        if step.outcome == "done":
            step = handled(step, self._files.artifact(name, artifact))
        return self._noted(step)

    def send(self, listed: TaskList) -> tuple[Happened, list[str]]:
        """
        All results that there are; with it, names in the sandbox of those that come back with the job's other results.
        """
        returned, complete = list[str](), True
        for output in listed.outputs:
            step, name = self._sent(output)
            if step is None:
                returned.append(name)
            else:
                complete &= self._noted(step)
        return "done" if complete else "failed", returned

    def _sent(self, output: Output) -> tuple[Step | None, str]:
        """The step of a result, and its name; no step: it is to come back."""
        step = Step(kind="send", outcome="done", name=output.name, began=time.time())
        found = self._files.output(output)
        self._heed()
        if not found.reason and not output.url:
            if _BETWEEN not in found.name:
                return None, found.name
            found = msgspec.structs.replace(found, reason="a name with a comma can only be sent to a URL")
        if found.reason:
            return handled(step, found), found.name
        step = self._moved(step, Move(output.url, self._path(found.name)), upload=True)
        return msgspec.structs.replace(step, bytes=found.bytes), found.name

    def _moved(self, step: Step, move: Move, *, upload: bool = False) -> Step:
        began, reason = time.time(), ""
        try:
            self._transfers.move([move], upload=upload)
        except TransferError as error:
            if not error.ending.holds:
                raise
            reason = error.ending.reason
        step = msgspec.structs.replace(step, began=began, ended=time.time())
        return msgspec.structs.replace(step, outcome="failed", reason=reason) if reason else step

    def _noted(self, step: Step) -> bool:
        """Whether a step went well, which is reported."""
        self._heed()
        self._steps.add(step)
        return step.outcome == "done"

    def _path(self, name: str) -> str:
        return f"{self._sandbox}/{name}"
