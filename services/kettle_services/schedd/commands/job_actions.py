"""What is done to jobs: hold, release, remove, and what is done to running ones."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from kettle.eventsourcing.command_pipeline import Decision
from kettle_services.schedd.commands.deeds import DeedsForOthers
from kettle_services.schedd.commands.selected_jobs import DecideJobs, decide_each
from kettle_services.schedd.domain.jobs.commands import Command, Hold, Release, Remove, RemoveX
from kettle_services.schedd.domain.jobs.decide import Refused, decide
from kettle_services.schedd.domain.jobs.orders import Order
from kettle_services.schedd.domain.queue.entry import QueuedJob
from kettle_services.schedd.domain.submission.routes import taken_off
from kettle_services.schedd.jobs.factories import Factories
from kettle_services.schedd.queue.recorder import QueueRecorder
from kettle_services.schedd.queue.removed_along import removed_along
from kettle_services.schedd.queue.selection import condition
from kettle_services.schedd.settings import ScheddSettings
from kettle_services.schedd.shadows.dispatch import ShadowDispatch
from kettle_wire.commands.schedd import ACT, Act, Acted, Action, Outcome, Select
from kettle_wire.endpoint import Position
from kettle_wire.events import JobEvent
from kettle_wire.identity import Identity
from kettle_wire.jobs import JobId

_DONE_BY: Final[Mapping[Action, str]] = {
    "hold": "condor_hold",
    "release": "condor_release",
    "remove": "condor_rm",
    "remove_x": "condor_rm -forcex",
    "vacate": "condor_vacate_job",
    "vacate_fast": "condor_vacate_job -fast",
    "suspend": "condor_suspend",
    "continue": "condor_continue",
    "unroute": "kettle ce unroute",
}
_COMMANDS: Final[Mapping[Action, Callable[[str, str], Command]]] = {
    "hold": Hold,
    "release": Release,
    "remove": Remove,
    "remove_x": RemoveX,
    "vacate": partial(Order, "vacate"),
    "vacate_fast": partial(Order, "vacate_fast"),
    "suspend": partial(Order, "suspend"),
    "continue": partial(Order, "continue"),
}
_OF_FACTORIES: Final = frozenset({"hold", "release", "remove"})
"""What can be done with jobs that are not made yet."""


class JobActions:
    """Decides `act`."""

    def __init__(
        self,
        recorder: QueueRecorder,
        shadows: ShadowDispatch,
        factories: Factories,
        settings: ScheddSettings,
        deeds: DeedsForOthers,
    ) -> None:
        self._recorder = recorder
        self._queue = recorder.queue
        self._shadows = shadows
        self._factories = factories
        self._settings = settings
        self._deeds = deeds

    async def act(self, request: Act, caller: Identity) -> Decision[Acted]:
        """Do one thing to some jobs, and to what is still to be made of their clusters."""
        person = caller.name
        reason = f"{request.reason or f'via {_DONE_BY[request.action]}'} (by user {person})"
        only_if = condition(request.select.constraint)
        factories = [
            self._factories.act(number, request, person=person, reason=reason)
            for number in list(self._factories.selected(request.select, only_if))
            if request.action in _OF_FACTORIES
        ]
        running: list[JobId] = []
        of = _decisions(request, reason, person, running)
        if request.action == "remove" and (others := await removed_along(self._queue, request.select)):
            # They go first: where the service dies in between, a repeat finds them again by the job that says so.
            along = await decide_each(self._recorder, self._settings, Select(jobs=others), person, of)
            self._recorder.record(along.recording)
        decided = await decide_each(self._recorder, self._settings, request.select, person, of)

        def reply(position: Position) -> Acted:
            return Acted(runs=decided.runs, position=position, factories=factories)

        tell = self._deeds.of(caller, ACT, request.action, decided.counts, factories)

        def deliver() -> None:
            tell()
            for job in running:
                if (entry := self._queue.jobs.get(job)) is not None and entry.job.claim:
                    self._shadows.deliver_orders(job)

        return Decision(reply, decided.recording, effect=deliver)


def _decisions(request: Act, reason: str, person: str, running: list[JobId]) -> DecideJobs:
    """What the action comes to; jobs to which it is done and that run are added to `running`."""
    command_of = _COMMANDS.get(request.action)
    if command_of is None:
        decide_one = partial(taken_off, reason=reason, by=person)
    else:
        if request.action == "hold" and request.subcode:
            command_of = partial(Hold, subcode=request.subcode)
        decide_one = partial(_decided, command=command_of(reason, person))

    def of(
        jobs: Sequence[JobId], entry: QueuedJob
    ) -> Iterator[tuple[Sequence[JobId], Sequence[JobEvent], Outcome]]:
        events, outcome = decide_one(entry)
        if outcome == "done" and entry.job.claim:
            running.extend(jobs)
        yield jobs, events, outcome

    return of


def _decided(entry: QueuedJob, command: Command) -> tuple[Sequence[JobEvent], Outcome]:
    """What is to be recorded of a job in this state, and what to answer."""
    try:
        events = decide(entry.job, command)
    except Refused:
        return (), "bad_status"
    return events, "done" if events else "already_done"
