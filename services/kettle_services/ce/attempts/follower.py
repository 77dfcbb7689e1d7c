"""
What is done about the jobs of one batch system: submitted, looked for, asked for, stopped, and reported when they are over.

What is to be done follows from what is recorded, so a process that begins again goes on where the last one stopped.
"""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from kettle.accounts.lookup import StrangerError
from kettle.execution.input_files.cache import InputCache
from kettle.faults import fault_point
from kettle_services.ce.attempts.book import Book, now
from kettle_services.ce.attempts.job_files import JobFiles
from kettle_services.ce.attempts.orders import Orders, job_of
from kettle_services.ce.attempts.sandboxes import AwayError, Sandboxes
from kettle_services.ce.batch.port import (
    BatchSystem,
    InDoubtError,
    NotTakenError,
    Submission,
    UnavailableError,
)
from kettle_services.ce.batch.settings import BatchSettings
from kettle_services.ce.domain.attempts import progress
from kettle_services.ce.domain.attempts.attempt import BatchClaim, Run, Stage
from kettle_services.ce.domain.attempts.claims import Changes
from kettle_services.ce.domain.attempts.endings import result_of
from kettle_services.ce.domain.attempts.pace import Pace
from kettle_services.ce.domain.batch.script import NOT_OURS
from kettle_wire.attempts import Ending
from kettle_wire.batch import BatchEnd, BatchState
from kettle_wire.codes import VacateCode
from kettle_wire.commands.startd import Activation
from kettle_wire.events.batch import BatchEvent
from kettle_wire.worker_reports import FinalReport, OutputFile

_log: Final = logging.getLogger(__name__)
_CHECK_S: Final = 60.0
"""How often it is asked whether it is well while it has no job of ours."""
_TRY_AGAIN_S: Final = 10.0
_TOGETHER: Final = 200
"""Changes that go into the log together: a frame is read as a whole."""


class Follower:
    """The jobs of one batch system."""

    def __init__(
        self,
        settings: BatchSettings,
        system: BatchSystem,
        sandboxes: Sandboxes,
        book: Book,
        inputs: InputCache,
        tasks: asyncio.TaskGroup,
        *,
        at_once: int,
    ) -> None:
        """`at_once`: so many jobs are submitted, and so many get their files, at the same time."""
        self.settings: Final = settings
        self.sandboxes: Final = sandboxes
        self.trouble = "it has not answered yet"
        """Why it takes no jobs now; empty: it does."""
        self._system: Final = system
        self._book: Final = book
        self._tasks: Final = tasks
        self._submissions: Final = asyncio.Semaphore(at_once)
        self._files: Final = JobFiles(sandboxes, inputs, settings.name, at_once=at_once)
        self._orders: Final = Orders(system, settings.name)
        self._busy: dict[str, asyncio.Task[None]] = {}
        """What is done last about a claim."""
        self._working: set[asyncio.Task[None]] = set()
        self._absent: dict[str, progress.Absence] = {}
        self._pace: Final = Pace(settings.poll_least, settings.poll_most)
        self._wake: Final = asyncio.Event()
        self._hint: Final = asyncio.Event()
        book.changed.append(self._changed)

    @property
    def name(self) -> str:
        """Of the batch system."""
        return self.settings.name

    def begin(self, claim: str, activation: Activation) -> None:
        """A job was accepted: have its files brought."""
        self._do(claim, partial(self._stage, claim, activation))

    async def take_up(self) -> None:
        """Go on with what a former process has left."""
        for claim, each in list(self._mine()):
            run = each.run
            if run is None:
                continue
            if run.stage is Stage.STAGING:  # what it came with is lost
                ending = Ending(
                    code=VacateCode.ScratchDirError,
                    reason="the entrypoint was restarted while the files of the job were on their way",
                )
                await self._book.of(claim, progress.not_staged(run, ending, now()))
            elif run.stage is Stage.SUBMITTING:
                words = "the entrypoint was restarted while the batch system was asked"
                await self._book.of(claim, progress.in_doubt(run, words, now()))
            elif run.stage is Stage.ENDED:
                self._do(claim, partial(self._report, claim))
        known = {each.run.intent for _, each in self._mine() if each.run is not None}
        await self._files.remove_others(known)
        self._wake.set()

    def _mine(self) -> list[tuple[str, BatchClaim]]:
        return [(name, each) for name, each in self._book.claims.items() if each.system == self.name]

    def _run(self, claim: str) -> Run | None:
        found = self._book.claims.get(claim)
        return found.run if found is not None else None

    def _changed(self, before: BatchClaim | None, after: BatchClaim | None) -> None:
        of = after or before
        if of is None or of.system != self.name or of.run is None:
            return
        if (where := _where(after)) != _where(before) and where is not None:
            self._pace.happened(time.monotonic())
        if after is None:
            self._orders.forget(of.claim)
            self._absent.pop(of.claim, None)
            self._do(of.claim, partial(self._files.remove, of.run.intent))
        elif of.run.stage is Stage.ENDED:
            self._do(of.claim, partial(self._report, of.claim))
        else:
            self._steer(of.claim)
        self._wake.set()

    def _do(self, claim: str, work: Callable[[], Awaitable[None]]) -> None:
        """One thing after the other about each claim."""
        before = self._busy.get(claim)

        async def done() -> None:
            if before is not None:
                await asyncio.wait([before])
            await work()

        task = self._tasks.create_task(done(), name=f"{self.name} {claim}")
        self._busy[claim] = task
        self._working.add(task)
        task.add_done_callback(lambda task: self._idle(claim, task))

    def _idle(self, claim: str, task: asyncio.Task[None]) -> None:
        self._working.discard(task)
        if self._busy.get(claim) is task:
            del self._busy[claim]
            self._wake.set()

    async def _stage(self, claim: str, activation: Activation) -> None:
        run = self._run(claim)
        if run is None or run.stage is not Stage.STAGING:
            return
        ending = await self._files.bring(run, activation)
        fault_point("batch.brought")
        run = self._run(claim)
        if run is None:
            return
        if ending is not None:
            await self._book.of(claim, progress.not_staged(run, ending, now()))
        else:
            await self._submit(claim)

    async def _submit(self, claim: str) -> None:
        async with self._submissions:
            run = self._run(claim)
            if run is None or not (events := progress.submitting(run, now())):
                return
            await self._book.of(claim, events)
            await self._ask_to_take(claim)

    async def _ask_to_take(self, claim: str) -> None:
        """It is recorded that it is asked."""
        run = self._run(claim)
        if run is None or run.stage is not Stage.SUBMITTING:
            return
        fault_point("batch.submitting")
        try:
            submission = Submission(
                intent=run.intent,
                owner=run.owner,
                **self._place(run),
                script=await self.sandboxes.script(run),
                request=run.request,
            )
            id_ = await self._system.submit(submission)
            fault_point("batch.taken")
            events = progress.taken(run, id_, now())
        except (NotTakenError, OSError, StrangerError) as error:
            passes = not isinstance(error, NotTakenError) or error.passes
            _log.info("not taken", extra={"system": self.name, "job": str(run.job), "cause": str(error)})
            run = self._run(claim) or run
            events = progress.not_taken(run, str(error), now(), passes=passes)
        except InDoubtError as error:
            _log.warning("in doubt", extra={"system": self.name, "job": str(run.job), "cause": str(error)})
            events = progress.in_doubt(run, str(error), now())
        await self._book.of(claim, events)

    def _place(self, run: Run) -> dict[str, str]:
        if self.settings.shared:
            return {"directory": self.sandboxes.path(run.intent)}
        return {"directory": self.settings.directory, "log": "/dev/null"}

    def heard(self) -> None:
        """
        One of its nodes has asked something: a job begins, or is over, and the batch system will say so.
        """
        self._pace.happened(time.monotonic())
        self._hint.set()

    async def _report(self, claim: str) -> None:
        """Tell how it ended, with what it left; its sandbox stays until that is recorded."""
        found = self._book.claims.get(claim)
        run = found.run if found is not None else None
        if found is None or run is None or run.stage is not Stage.ENDED:
            return
        fault_point("batch.ended")
        files, ending = list[OutputFile](), run.ending
        if run.id and run.end is not None and ending is None:
            files, ending = await self._files.results(run)
        result = result_of(run, ending, sent=sum(each.size for each in files))
        self._book.send(found, FinalReport(result=result, outputs=files, told=self._book.told(found, run)))

    async def follow(self) -> None:
        """Ask for all jobs again and again; never returns."""
        while True:
            self._wake.clear()
            began = time.monotonic()
            try:
                asked = await self._look()
                if not asked:
                    troubles = await self._system.check()
                    self.trouble = "; ".join(troubles)
                else:
                    self.trouble = ""
            except UnavailableError as error:
                if not self.trouble:
                    _log.warning("it does not answer", extra={"system": self.name, "cause": str(error)})
                self.trouble = f"batch system {self.name} does not answer: {error}"
                await asyncio.sleep(_TRY_AGAIN_S)
                continue
            ended = time.monotonic()
            await self._hinted(ended - began, ended)
            if not asked:
                await self._woken(self._rest())

    async def _hinted(self, took: float, ended: float) -> None:
        """Wait until it is asked again: sooner, if a node gives the word."""
        self._hint.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._pace.pause(took, ended)):
                await self._hint.wait()
                await asyncio.sleep(self.settings.poll_least)

    def _rest(self) -> float:
        """Seconds until something is due."""
        runs = [each.run for _, each in self._mine() if each.run is not None]
        times = [run.again - now() for run in runs if run.stage is Stage.DEFERRED]
        return max(0.0, min([_CHECK_S, *times]))

    def close(self) -> None:
        """Begin nothing more, and give up what is being done: it is gone on with by the next process."""
        for task in self._working:
            task.cancel()

    async def _woken(self, within: float) -> None:
        try:
            async with asyncio.timeout(within):
                await self._wake.wait()
        except TimeoutError:
            pass

    async def _look(self) -> bool:
        """Whether there was anything to ask."""
        doubtful: dict[str, Run] = {}
        there: dict[str, Run] = {}
        for claim, each in self._mine():
            run = each.run
            if run is None:
                continue
            match run.stage:
                case Stage.IN_DOUBT:
                    doubtful[claim] = run
                case Stage.DEFERRED if run.again <= now() and claim not in self._busy:
                    self._do(claim, partial(self._submit, claim))
                case Stage.SUBMITTED:
                    there[claim] = run
                case _:
                    pass
        if doubtful:
            await self._find(doubtful)
        if there:
            await self._poll(there)
        return bool(doubtful or there)

    async def _find(self, doubtful: dict[str, Run]) -> None:
        asked = now()
        owners = {run.owner for run in doubtful.values() if run.owner}
        try:
            found = await self._system.find([run.intent for run in doubtful.values()], sorted(owners))
        except UnavailableError as error:  # they stay in doubt; the others are asked for all the same
            _log.info("not looked for", extra={"system": self.name, "cause": str(error)})
            return
        for claim, run in doubtful.items():
            if self._run(claim) is not run:
                continue
            if (id_ := found.get(run.intent)) is not None:
                fault_point("batch.found")
                await self._book.of(claim, progress.taken(run, id_, now()))
            elif events := progress.not_found(run, asked, settling=self._system.settling):
                await self._not_found(claim, run, events)

    async def _not_found(self, claim: str, run: Run, events: list[BatchEvent]) -> None:
        """
        A job that has begun was taken: it may have ended since, and not every batch system lists those that have.
        """
        try:
            number = await self._files.begun(run)
        except AwayError:
            return
        if number:
            fault_point("batch.found")
            await self._book.of(claim, progress.taken(run, number, now()))
        elif number is None or run.stop is not None:
            await self._book.of(claim, events)
            self._do(claim, partial(self._ask_again, claim))

    async def _ask_again(self, claim: str) -> None:
        async with self._submissions:
            await self._ask_to_take(claim)

    async def _poll(self, there: Mapping[str, Run]) -> None:
        seen = await self._system.poll([job_of(run) for run in there.values()])
        absent: dict[str, Run] = {}
        over: dict[str, BatchEnd] = {}
        changes: Changes = []
        for claim, run in there.items():
            if (said := seen.get(run.id)) is None:
                absent[claim] = run
                continue
            self._absent.pop(claim, None)
            if said.end is not None:
                over[claim] = said.end
            elif said.state is None:
                _log.error("a word that is not known", extra={"system": self.name, "said": said.words})
            else:
                found = progress.seen(run, said.state, now(), words=said.words, host=said.host)
                changes += [(claim, event) for event in found]
        await self._record(there, changes)
        for claim in there:
            self._steer(claim)
        await self._end(there, list(over), lambda claim, left: progress.completed(over[claim], left))
        if absent:
            await self._look_into(absent)

    async def _end(
        self,
        asked: Mapping[str, Run],
        over: Sequence[str],
        judged: Callable[[str, BatchEnd | None], BatchEnd | None],
    ) -> None:
        """
        Record how jobs ended, as `judged` says by what each has left; None: it may not have ended.

        What jobs have left is read of many at the same time, and what is known of those is recorded before the next ones are read.
        """
        claims = [claim for claim in over if self._run(claim) is asked[claim]]
        for start in range(0, len(claims), _TOGETHER):
            part = claims[start : start + _TOGETHER]
            lefts = await asyncio.gather(*(self._left(asked[claim]) for claim in part))
            changes: Changes = []
            for claim, left in zip(part, lefts, strict=True):
                if left is not None and (end := judged(claim, left[0])) is not None:
                    events = await self._over(claim, asked[claim], end, left[0])
                    changes += [(claim, event) for event in events]
            if changes:
                fault_point("batch.answered")
            await self._record(asked, changes)

    async def _over(self, claim: str, run: Run, end: BatchEnd, left: BatchEnd | None) -> list[BatchEvent]:
        """What follows for a job that has ended so: it may be a second one of which the first goes on."""
        if left is not None or end.exit_code != NOT_OURS:
            return progress.ended(run, end, now())
        try:
            by = await self._files.begun(run)
        except AwayError:
            by = ""
        self._absent.pop(claim, None)  # that one was missed, not the first
        return progress.ended_as_second(run, end, by, now(), settling=self._system.settling)

    async def _left(self, run: Run) -> tuple[BatchEnd | None] | None:
        """
        How a job ended by its own word; None: its host is away, and it is asked for with the next answer.
        """
        try:
            return (await self._files.left(run),)
        except AwayError:
            return None

    async def _record(self, asked: Mapping[str, Run], changes: Changes) -> None:
        """
        Record what is about jobs that are still as they were when they were asked for; many go together.
        """
        for start in range(0, len(changes), _TOGETHER):
            part = changes[start : start + _TOGETHER]
            await self._book.record([each for each in part if self._run(each[0]) is asked[each[0]]])

    async def _look_into(self, absent: dict[str, Run]) -> None:
        """Of jobs that it does not name any more."""
        for claim in absent:
            before = self._absent.get(claim) or progress.Absence(polls=0, since=now())
            self._absent[claim] = progress.Absence(polls=before.polls + 1, since=before.since)
        long = {claim: run for claim, run in absent.items() if progress.is_looked_into(self._absent[claim])}
        if not long:
            return
        absences = {claim: self._absent[claim] for claim in long}
        lost_after, books = self.settings.lost_after, dict[str, BatchEnd | None]()
        settling = self._system.settling
        try:
            books |= await self._system.accounting([job_of(run) for run in long.values()])
        except UnavailableError as error:  # nobody is given up while the books cannot be read
            lost_after = settling = math.inf
            _log.info("its books cannot be read", extra={"system": self.name, "cause": str(error)})

        goes_on = {id_ for id_, end in books.items() if end is None}

        def judged(claim: str, left: BatchEnd | None) -> BatchEnd | None:
            run = long[claim]
            patience = progress.patience_with(run, lost_after, settling=settling)
            if run.id in goes_on and not self._orders.is_gone(claim, run):
                patience = math.inf  # the books may never be closed, but nobody has denied it either
            return progress.judged(absences[claim], books.get(run.id), left, now(), patience=patience)

        await self._end(long, list(long), judged)

    def _steer(self, claim: str) -> None:
        """Give the batch system the order that is due."""
        run = self._run(claim)
        if run is not None and claim not in self._busy and (order := self._orders.due(claim, run)):
            self._do(claim, partial(self._orders.give, claim, order, run))


def _where(claim: BatchClaim | None) -> tuple[Stage, BatchState | None, bool] | None:
    """How far a job is, and whether it is to end."""
    run = claim.run if claim is not None else None
    return None if run is None else (run.stage, run.state, run.stop is not None)
