"""Looking after one attempt of one job, from its assignment to the record of its end."""

import asyncio
import hmac
import logging
from pathlib import Path
from typing import Final, assert_never

from kettle.bus.ports import RefusedError
from kettle.shadow.inputs import TRANSFER_INPUT_ERROR, InputError, Inputs, Source
from kettle.shadow.outputs import TRANSFER_OUTPUT_ERROR, OutputError, place
from kettle.shadow.reporter import Reporter
from kettle.shadow.workers import Workers
from kettle.wire.commands.schedd import AttemptReport, Began, Ended, Finished
from kettle.wire.commands.shadow import Assignment
from kettle.wire.commands.startd import Activation
from kettle.wire.work import Exited, Failed, Measured, Report, Started

_log: Final = logging.getLogger(__name__)

FAILED_TO_ACTIVATE: Final = 1006
CLAIM_NOT_FOUND: Final = 1034
NO_SUCH_FILE: Final = 2


class Attempt:
    """One attempt; `run` returns when its end is recorded."""

    def __init__(
        self, assignment: Assignment, shadow: str, inputs: Inputs, workers: Workers, reporter: Reporter
    ) -> None:
        self.assignment: Final = assignment
        self._shadow = shadow
        self._inputs = inputs
        self._workers = workers
        self._reporter = reporter
        self._reports: asyncio.Queue[Report] = asyncio.Queue()
        self._sources: dict[str, Source] = {}
        self._began = False

    async def run(self) -> None:
        """Activate the claim, follow the worker's reports, bring the results home, and have it recorded."""
        if not await self._activate():
            return None
        while True:
            report = await self._reports.get()
            match report.body:
                case Started() as started:
                    self._begin(Began(pid=started.pid, at=started.at))
                case Measured():
                    pass  # use so far is shown by the machine's own ad
                case Exited() as exited:
                    await self._tell(await self._finish(exited))
                    return self._confirm(report)
                case Failed() as failed:
                    await self._tell(
                        Ended(
                            hold=failed.hold,
                            code=failed.code,
                            subcode=failed.subcode,
                            reason=failed.reason,
                            usage=failed.usage,
                        )
                    )
                    return self._confirm(report)
                case _:
                    assert_never(report.body)

    def hear(self, report: Report) -> None:
        """The worker said something; repeats of what was said do no harm."""
        self._reports.put_nowait(report)

    def source(self, secret: str, name: str) -> Path | None:
        """The input file that a worker asks for; None if it may not have it, or there is none."""
        if not hmac.compare_digest(secret, self.assignment.key.secret):
            return None
        found = self._sources.get(name)
        return found.path if found is not None else None

    async def _activate(self) -> bool:
        assignment = self.assignment
        try:
            sources = await self._inputs.gather(assignment.ad)
        except InputError as error:
            await self._tell(
                Ended(hold=True, code=TRANSFER_INPUT_ERROR, subcode=error.errno, reason=str(error))
            )
            return False
        self._sources = {source.file.name: source for source in sources}
        activation = Activation(
            key=assignment.key,
            job=assignment.job,
            attempt=assignment.attempt,
            ad=assignment.ad,
            inputs=[source.file for source in sources],
            shadow=self._shadow,
            trace=assignment.trace,
        )
        try:
            result = await self._workers[assignment.startd].activate(activation)
        except RefusedError as refusal:
            await self._tell(Ended(hold=False, code=FAILED_TO_ACTIVATE, reason=str(refusal), claim_lost=True))
            return False
        if result.code:
            lost = result.code == CLAIM_NOT_FOUND
            await self._tell(Ended(hold=False, code=result.code, reason=result.reason, claim_lost=lost))
            return False
        return True

    async def _finish(self, exited: Exited) -> Finished | Ended:
        if not self._began and exited.at:
            self._begin(Began(pid=0, at=exited.at - exited.usage.wall))
        fetch = self._workers.fetcher(self.assignment)
        mark = f"{self.assignment.job}-{self.assignment.attempt}"
        try:
            await place(self.assignment.ad, exited.outputs, fetch, mark=mark)
        except OutputError as error:
            return self._held(str(error), error.errno, exited)
        except (RefusedError, ValueError) as error:
            return self._held(f"Transfer output files failure: {error}", 0, exited)
        if exited.missing:
            names = ", ".join(exited.missing)
            reason = f"Transfer output files failure at the execution point: the job did not make {names}"
            return self._held(reason, NO_SUCH_FILE, exited)
        return Finished(
            exit_code=exited.exit_code, exit_signal=exited.exit_signal, at=exited.at, usage=exited.usage
        )

    def _held(self, reason: str, errno: int, exited: Exited) -> Ended:
        return Ended(hold=True, code=TRANSFER_OUTPUT_ERROR, subcode=errno, reason=reason, usage=exited.usage)

    def _begin(self, began: Began) -> None:
        if not self._began:
            self._began = True
            self._reporter.tell(self._report(began))

    async def _tell(self, news: Finished | Ended) -> None:
        await self._reporter.tell(self._report(news))

    def _report(self, news: Began | Finished | Ended) -> AttemptReport:
        return AttemptReport(
            job=self.assignment.job,
            attempt=self.assignment.attempt,
            claim=self.assignment.key.claim,
            news=news,
        )

    def _confirm(self, report: Report) -> None:
        self._workers[self.assignment.startd].confirm(report.key)
