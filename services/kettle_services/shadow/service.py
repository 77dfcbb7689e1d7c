"""The shadow's list of attempts, kept equal to what its schedd has recorded."""

import asyncio
import logging
import time
from bisect import bisect_right
from functools import partial
from typing import Any, Final

import msgspec

from kettle import VERSION
from kettle.accounts.lookup import Accounts, StrangerError
from kettle.bus.ports import Bus, BusError, RefusedError, Served
from kettle.flocking.passes import Passes
from kettle.flocking.pool_connections import PoolConnection, PoolConnections, StartdRouter
from kettle.jobs.nodes import is_parallel
from kettle.runtime import Telemetry
from kettle_services.shadow.attempts.attempt import AttemptFollower
from kettle_services.shadow.attempts.gang import GangFollower
from kettle_services.shadow.attempts.job_tokens import TokenRequests
from kettle_services.shadow.attempts.other_nodes import OtherNodes
from kettle_services.shadow.attempts.published_services import TicketRequests
from kettle_services.shadow.attempts.submit_side import AttemptContext
from kettle_services.shadow.attempts.unmatched_reports import UnmatchedReports
from kettle_services.shadow.chirp.pool_access import Commanding
from kettle_services.shadow.chirp.requests import Terms
from kettle_services.shadow.connections.schedd_reports import ScheddReporter
from kettle_services.shadow.connections.startd_registry import StartdRegistry
from kettle_services.shadow.domain.transfer_checks import is_graceful
from kettle_services.shadow.file_transfer.input_files import Inputs, Limits, Source
from kettle_services.shadow.file_transfer.object_store import Objects
from kettle_services.shadow.file_transfer.queue import TransferQueue
from kettle_services.shadow.file_transfer.url_signing import Signer
from kettle_services.shadow.files.access import FileAccess
from kettle_services.shadow.files.disk_threads import FileWork
from kettle_services.shadow.outputs import JobOutputs
from kettle_services.shadow.owners import Owners
from kettle_services.shadow.settings import ShadowSettings
from kettle_services.shadow.spool.checkpoint_cleanup import Cleaner
from kettle_services.shadow.spool.checkpoints import Spool, condemned
from kettle_services.shadow.spool.job_files import SpooledFiles
from kettle_services.shadow.spool.submitter_transfers import Spooling
from kettle_wire.codes import RefusalCode
from kettle_wire.commands import attempt_reports
from kettle_wire.commands.attempt_reports import SYNC, ShadowOrders, ShadowSync
from kettle_wire.commands.questions import (
    Answered,
    Ask,
    AskTicket,
    Command,
    FetchTokens,
    OnNode,
    SignUrls,
    StreamPiece,
)
from kettle_wire.commands.shadow import (
    ANSWER,
    FETCH_INPUT,
    OFFER_INPUT,
    Assignment,
    FetchInput,
    LookAfter,
    Offered,
    OfferInput,
    Still,
    Stop,
)
from kettle_wire.commands.startd import Done, Piece
from kettle_wire.flocking import abroad, name_there, pool_of
from kettle_wire.identity import Identity
from kettle_wire.jobs import JobId
from kettle_wire.subjects import Subjects
from kettle_wire.telemetry import queue_metrics as metrics
from kettle_wire.telemetry.traces import SHADOW_ATTEMPT
from kettle_wire.worker_reports import FinalReport, Report, Reports

_log: Final = logging.getLogger(__name__)
_KEPT: Final = 1000
"""Jobs with files for their next run, in one message; those that are over make room for others."""
_decode: Final = msgspec.msgpack.Decoder(Reports).decode


class Followed:
    """An attempt that is looked after; `stopping` has it ended, and ends with it."""

    def __init__(self, attempt: AttemptFollower | GangFollower) -> None:
        self.attempt: Final = attempt
        self.task: asyncio.Task[None]
        self.stopping: asyncio.Task[None] | None = None
        self.hurried = False
        """It is ended without time to end, whatever was ordered first."""

        self.stilling: asyncio.Task[None] | None = None
        self.ordered = 0
        """Number of the last order to suspend or to continue."""

    def leave(self) -> None:
        """Look after it no longer; it goes on where it runs."""
        self.task.cancel()
        for order in (self.stopping, self.stilling):
            if order is not None:
                order.cancel()


class Shadow:
    """All attempts that this process looks after."""

    def __init__(
        self,
        bus: Bus,
        subjects: Subjects,
        settings: ShadowSettings,
        tasks: asyncio.TaskGroup,
        telemetry: Telemetry,
        *,
        joined: bool = False,
    ) -> None:
        """`joined`: its access point has joined the pool by a token."""
        self._bus = bus
        self._subjects = subjects
        self._settings = settings
        self._tasks = tasks
        self._telemetry = telemetry
        self._visits = PoolConnections(Passes(settings.home_path), tasks, self._visit)
        self._workers = StartdRegistry(StartdRouter(bus, self._visits), settings, tasks)
        places = FileAccess(settings.home_path)
        spooled = SpooledFiles(settings.spooled_path, most=settings.max_input_mib << 20)
        self.spooling: Final = Spooling(bus, settings, spooled)
        self.owners: Final = Owners(Accounts(), places, spooled)
        self.outputs: Final = JobOutputs(bus, settings, self.owners, spooled)
        self.cleaner = Cleaner(condemned(settings.spool_path), self.owners.of_directory)
        loop = asyncio.get_running_loop()
        wake = partial(loop.call_soon_threadsafe, self.cleaner.wake)
        self._spool = Spool(settings.spool_path, condemns=wake)
        self._queue = TransferQueue(
            uploads=settings.max_concurrent_uploads, downloads=settings.max_concurrent_downloads
        )
        limits = Limits(
            inline=settings.inline_bytes,
            inline_total=settings.inline_total_bytes,
            total=settings.max_input_mib << 20,
        )
        # What jobs may read was looked at when they were given it; these send it once more.
        given = FileAccess(settings.home_path, spools=[settings.spool_path, settings.spooled_path])
        self._objects = Objects(bus, subjects, settings, tasks)
        self._sent_bytes = 0
        self._inputs = Inputs(given, limits, cache_bytes=settings.cache_bytes)
        self._signer = Signer(lifetime=settings.presigned_url_lifetime)
        self.reporter = ScheddReporter(bus, settings, self.start)
        self._commanding = Commanding(bus, settings.schedd, self.spooling.served_to_jobs())
        self._other_nodes = OtherNodes(bus)
        self._file_work = FileWork(settings.chirp_open_files)
        self._tokens = TokenRequests(bus, settings, joined=joined)
        self._tickets = TicketRequests(bus, settings)
        self._side = AttemptContext(
            shadow=settings.name,
            owners=self.owners,
            inputs=self._inputs,
            workers=self._workers,
            reporter=self.reporter,
            max_output=settings.max_output_mib << 20,
            spool=self._spool,
            spooled=spooled,
            queue=self._queue,
            terms=Terms(
                at_once=settings.chirp_at_once,
                hourly=settings.chirp_hourly,
                delayed=settings.chirp_delayed_update_prefix,
                directories=settings.limit_directory_access,
            ),
            file_work=self._file_work,
            tokens=self._tokens,
        )
        self._attempts: dict[JobId, Followed] = {}
        self._strays = UnmatchedReports()
        self._sync = asyncio.Event()
        self._asked_about = JobId(0, 0)
        self._closed = False
        telemetry.observe(metrics.SHADOW_ATTEMPTS, lambda: len(self._attempts))
        telemetry.observe(metrics.TRANSFERS_WAITING, lambda: self._queue.waiting)
        telemetry.observe(metrics.INPUT_SENT, lambda: self._sent_bytes)
        telemetry.observe(metrics.OBJECTS_SENT, lambda: self._objects.sent_bytes)

    # -- orders -------------------------------------------------------------------------------------------------------

    async def look_after(self, request: LookAfter, caller: Identity) -> Done:
        """The schedd hands over, or takes back."""
        if self._closed:
            raise RefusedError(RefusalCode.STOPPING, f"the shadow {self._settings.name} is asked to stop")
        for assignment in request.start:
            self.start(assignment)
        for stop in request.stop:
            self._stop(stop)
        for still in request.still:
            self._still(still)
        return Done()

    def start(self, assignment: Assignment) -> None:
        """Look after an attempt; one that is looked after already changes nothing."""
        known = self._attempts.get(assignment.job)
        if known is not None:
            if known.attempt.assignment.attempt >= assignment.attempt:
                return
            known.leave()
        follower = GangFollower if is_parallel(assignment.ad) else AttemptFollower
        attempt = follower(assignment, self._side)
        for startd, report in self._strays.take(attempt_reports.Attempt(assignment.job, assignment.attempt)):
            _hear(attempt, startd, report)
        followed = self._attempts[assignment.job] = Followed(attempt)
        followed.task = self._tasks.create_task(self._follow(attempt), name=f"job {assignment.job}")
        followed.task.add_done_callback(lambda _: self._over(followed))

    async def _follow(self, attempt: AttemptFollower | GangFollower) -> None:
        assignment = attempt.assignment
        with self._telemetry.span(
            SHADOW_ATTEMPT.name,
            parent={"traceparent": assignment.trace},
            job=str(assignment.job),
            attempt=assignment.attempt,
            slot=assignment.slot,
        ):
            await attempt.run()

    def _over(self, followed: Followed) -> None:
        followed.leave()
        job = followed.attempt.assignment.job
        if self._attempts.get(job) is followed:
            del self._attempts[job]

    def _known(self, job: JobId, attempt: int) -> Followed | None:
        followed = self._attempts.get(job)
        if followed is None or followed.attempt.assignment.attempt != attempt:
            return None
        return followed

    def _node(self, job: JobId, attempt: int, claim: str) -> AttemptFollower | None:
        """Who looks after what runs on a claim."""
        known = self._known(job, attempt)
        return None if known is None else known.attempt.part(claim)

    def _stop(self, stop: Stop) -> None:
        """End an attempt; a repeat changes nothing."""
        known = self._known(stop.job, stop.attempt)
        if known is None:
            return
        if stop.lost and isinstance(known.attempt, GangFollower):
            known.attempt.lose(stop.lost, stop.ending)
        hurries = bool(stop.hard) and not known.hurried
        if known.stopping is not None and hurries:
            known.stopping.cancel()
        if known.stopping is None or hurries:
            known.hurried = known.hurried or hurries
            known.stopping = self._tasks.create_task(self._end(known, stop), name=f"stop {stop.job}")

    async def _end(self, followed: Followed, stop: Stop) -> None:
        try:
            hard, ad = stop.hard, followed.attempt.assignment.ad
            if hard is None:
                hard = not is_graceful(ad, default=self._settings.gracefully_remove_jobs)
            await followed.attempt.deactivate(stop.ending, hard=hard)
        except RefusedError as refusal:  # the schedd repeats the order as long as the attempt lives
            _log.warning("not ended", extra={"job": str(stop.job), "cause": str(refusal)})
            if followed.stopping is asyncio.current_task():
                followed.stopping, followed.hurried = None, False

    def _still(self, order: Still) -> None:
        """Suspend an attempt or continue it; a repeated or outdated order changes nothing."""
        known = self._known(order.job, order.attempt)
        if known is None or order.number <= known.ordered:
            return
        if known.stilling is not None:
            known.stilling.cancel()
        known.ordered = order.number
        known.stilling = self._tasks.create_task(self._suspend(known, order), name=f"still {order.job}")

    async def _suspend(self, followed: Followed, order: Still) -> None:
        try:
            await followed.attempt.suspend(suspended=order.suspended, number=order.number)
        except RefusedError as refusal:  # the schedd repeats the order as long as the attempt lives
            _log.warning("not suspended", extra={"job": str(order.job), "cause": str(refusal)})
            if followed.ordered == order.number:
                followed.ordered = 0

    async def fetch_input(self, request: FetchInput, caller: Identity) -> Piece:
        """A worker reads an input file."""
        _, source = self._source(request, caller)
        path = source.path
        try:
            data = await asyncio.to_thread(self._inputs.piece, source, request.offset, request.length)
        except OSError as error:
            raise RefusedError(RefusalCode.UNREADABLE, f"reading {path} failed: {error.strerror}") from error
        except ValueError as error:
            raise RefusedError(RefusalCode.UNREADABLE, f"reading {path} failed: {error}") from error
        self._sent_bytes += len(data)
        return Piece(data)

    async def offer_input(self, request: OfferInput, caller: Identity) -> Offered:
        """A worker asks whether an input file is in the object store, which is for those of our own pool."""
        assignment, source = self._source(request, caller)
        if pool_of(assignment.startd):
            return Offered()
        piece = await self._objects.offer(source, assignment.startd)
        if piece is None:
            raise RefusedError(RefusalCode.BUSY, f"{source.path} is on its way into the object store")
        return Offered(piece=piece)

    def _source(self, request: FetchInput | OfferInput, caller: Identity) -> tuple[Assignment, Source]:
        """The input file that a worker wants, if it may have it now."""
        node = self._node(request.job, request.attempt, request.key.claim)
        source = node.source(request.key.secret, request.name) if node is not None else None
        if node is None or source is None or not _runs_on(node, caller):
            raise RefusedError(
                RefusalCode.NOT_FOUND, f"job {request.job} has no input file {request.name} for you"
            )
        if not node.may_read():
            raise RefusedError(
                RefusalCode.BUSY, f"job {request.job} waits for its turn to have its input files sent"
            )
        return node.assignment, source

    async def answer(self, request: Ask, caller: Identity) -> Answered:
        """What a starter asks, for itself or for a program of its job."""
        node = self._node(request.job, request.attempt, request.key.claim)
        if node is None or not node.trusts(request.key.secret) or not _runs_on(node, caller):
            raise RefusedError(RefusalCode.NOT_FOUND, f"job {request.job} is not looked after here for you")
        ad, question = node.assignment.ad, request.question
        if isinstance(question, Command):
            return Answered(await self._commanding.carry_out(question, node.assignment))
        if isinstance(question, OnNode):
            return Answered(await self._other_nodes.carry_out(question, self._attempts[request.job].attempt))
        if isinstance(question, FetchTokens):
            return Answered(await self._tokens.fetch(node.assignment))
        if isinstance(question, AskTicket):
            return Answered(await self._tickets.fetch(node.assignment))
        if not isinstance(question, SignUrls | StreamPiece):
            return Answered(await node.grant(question))
        try:
            if isinstance(question, StreamPiece):
                return Answered(await node.stream(question))
            places = await node.access()
        except StrangerError as refusal:  # whose keys and files these are not
            raise RefusedError(RefusalCode.DENIED, str(refusal)) from refusal
        sign = partial(self._signer.sign, ad, question.urls, places, upload=question.upload)
        return Answered(await asyncio.to_thread(sign))

    def close(self) -> None:
        """Stop following attempts: they continue, and the next shadow takes them over."""
        self._closed = True
        for followed in self._attempts.values():
            followed.leave()
        self._workers.close()
        self._visits.close()
        self._inputs.close()
        self.outputs.close()
        self._objects.close()
        self._file_work.close()
        self.spooling.close()

    # -- the worker's reports ----------------------------------------------------------------------------------------

    def served(self) -> list[Served[Any, Any]]:
        """What machines ask, wherever they are."""
        return [
            Served(FETCH_INPUT, self.fetch_input),
            Served(OFFER_INPUT, self.offer_input),
            Served(ANSWER, self.answer),
        ]

    async def _visit(self, visit: PoolConnection, bus: Bus) -> None:
        """Look after what runs in another pool, until the connection to it is over."""
        subjects = Subjects(visit.pool)
        await bus.serve("shadow", visit.visitor, self.served(), version=VERSION)
        await self.listen(bus, subjects, visit.visitor, pool=visit.name)

    async def listen(self, bus: Bus, subjects: Subjects, schedd: str, *, pool: str = "") -> None:
        """
        Follow the reports of workers of a pool, our own or another, to the schedd by its name there; never returns.

        A batch is acknowledged at once, because workers repeat the reports on which a job's end depends until they are
        confirmed, and that its program runs whenever the attempt is activated again.
        """
        subject, durable = subjects.work_of(schedd), subjects.work_reader(schedd)
        async for batch in bus.consume(subjects.work_stream, durable, subject=subject):
            for message in batch.messages:
                try:
                    reports = _decode(message.data)
                except msgspec.MsgspecError as error:
                    _log.warning("not a report", extra={"subject": message.subject, "cause": str(error)})
                    continue
                startd = subjects.reporter(message.subject)
                if reports.startd != startd:
                    _log.warning("reports in another's name", extra={"by": startd, "as": reports.startd})
                    continue
                for report in reports.reports:
                    self._hear(abroad(pool, startd), report)
            await batch.ack()

    def _hear(self, startd: str, report: Report) -> None:
        known = self._known(report.job, report.attempt)
        if known is not None:
            _hear(known.attempt, startd, report)
        elif isinstance(report.body, FinalReport) and self._strays.add(startd, report):
            self._sync.set()

    # -- the full exchange -------------------------------------------------------------------------------------------

    async def keep_in_step(self) -> None:
        """Compare lists with the schedd, periodically and whenever there is a reason; never returns."""
        while True:
            self._sync.clear()
            interval = await self._exchange()
            try:
                async with asyncio.timeout(interval):
                    await self._sync.wait()
            except TimeoutError:
                pass  # the interval has passed

    def schedd_came_back(self) -> None:
        """The schedd has restarted: it may have lost requests, and lists have to be compared."""
        self.reporter.schedd.came_back()
        self._sync.set()

    def startd_came_back(self, startd: str) -> None:
        """A startd has restarted."""
        self._workers.came_back(startd)

    async def _exchange(self) -> float:
        """Compare lists once; seconds to the next time."""
        listed = [
            attempt_reports.Attempt(job, followed.attempt.assignment.attempt)
            for job, followed in self._attempts.items()
        ]
        strays, began = self._strays.attempts(), time.monotonic()
        kept, (spooled, spools) = await self._kept(), await self.spooling.kept()
        request = ShadowSync(
            shadow=self._settings.name,
            attempts=listed,
            strays=strays,
            kept=kept,
            spooled=spooled,
            spools=spools,
        )
        try:
            orders = await self._bus.call(
                SYNC, self._settings.schedd, request, deadline=self._settings.call_deadline
            )
        except BusError as error:
            _log.info("schedd not reached", extra={"cause": str(error), "after_s": time.monotonic() - began})
            return self._settings.retry
        self._obey(orders)
        await self.spooling.forget(request, orders)
        return 0.0 if orders.more else orders.sync_interval

    async def _kept(self) -> list[JobId]:
        """
        Jobs with saved files of which we do not know whether they run again: some of them now, the next ones next time.
        """
        found = sorted(set(await asyncio.to_thread(self._spool.jobs)).difference(self._attempts))
        if len(found) > _KEPT:
            first = bisect_right(found, self._asked_about)
            found = (found[first:] + found[:first])[:_KEPT]
            self._asked_about = found[-1]
        return found

    def _obey(self, orders: ShadowOrders) -> None:
        for assignment in orders.start:
            self.start(assignment)
        for stop in orders.stop:
            self._stop(stop)
        for still in orders.still:
            self._still(still)
        for ended in orders.forget:
            known = self._known(ended.job, ended.attempt)
            if known is not None:
                known.leave()
                self._tasks.create_task(self._tokens.end(known.attempt.assignment))
        for job in orders.drop:
            self._spool.drop(job)
        for ended in orders.over:  # nobody will ask for their results any more
            for startd, report in self._strays.take(ended):
                self._workers[startd].confirm(report.key)


def _hear(attempt: AttemptFollower | GangFollower, startd: str, report: Report) -> None:
    part = attempt.part(report.claim)
    if part is not None and part.assignment.startd == startd:  # nobody speaks of another's jobs
        part.receive_report(report)


def _runs_on(attempt: AttemptFollower, caller: Identity) -> bool:
    """
    Whether it is the startd of an attempt that asks about it: what an attempt is known by may have leaked.
    """
    return caller.kind != "worker" or name_there(attempt.assignment.startd) == caller.name
