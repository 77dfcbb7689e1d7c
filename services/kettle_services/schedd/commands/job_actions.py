"""What is done to jobs: hold, release, remove, and what is done to running ones."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from kettle.eventsourcing.command_pipeline import Decision
from kettle_services.schedd.commands.deeds import DeedsForOthers
from kettle_services.schedd.commands.selected_jobs import DecideJob, decide_each
from kettle_services.schedd.domain.jobs.commands import Command, Hold, Release, Remove, RemoveX
from kettle_services.schedd.domain.jobs.decide import Refused, decide
from kettle_services.schedd.domain.jobs.job import Job
from kettle_services.schedd.domain.jobs.orders import Order
from kettle_services.schedd.domain.queue.entry import QueuedJob
from kettle_services.schedd.domain.submission.routes import taken_off
from kettle_services.schedd.jobs.factories import Factories
from kettle_services.schedd.queue.recorder import QueueRecorder
from kettle_services.schedd.queue.removed_along import removed_along
from kettle_services.schedd.queue.selection import condition
from kettle_services.schedd.settings import ScheddSettings
from kettle_services.schedd.shadows.dispatch import ShadowDispatch
from kettle_wire.commands.schedd import ACT, Act, Acted, Action, JobOutcome, Outcome, Select
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
        of = _decisions(request, reason, person)
        along: list[JobOutcome] = []
        if request.action == "remove" and (others := await removed_along(self._queue, request.select)):
            # They go first: where the service dies in between, a repeat finds them again by the job that says so.
            recording, along = await decide_each(
                self._recorder, self._settings, Select(jobs=others), person, of
            )
            self._recorder.record(recording)
        changes, outcomes = await decide_each(self._recorder, self._settings, request.select, person, of)

        def reply(position: Position) -> Acted:
            return Acted(outcomes=outcomes, position=position, factories=factories)

        tell = self._deeds.of(caller, ACT, request.action, outcomes, factories)

        def deliver() -> None:
            tell()
            for outcome in (*along, *outcomes):
                entry = self._queue.jobs.get(outcome.job)
                if outcome.outcome == "done" and entry is not None and entry.job.claim:
                    self._shadows.deliver_orders(outcome.job)

        return Decision(reply, changes, effect=deliver)


def _decisions(request: Act, reason: str, person: str) -> DecideJob:
    """What the action comes to for each job."""
    if request.action == "unroute":
        return lambda _job, entry: taken_off(entry, reason, person)
    command_of = _COMMANDS[request.action]
    if request.action == "hold" and request.subcode:
        command_of = partial(Hold, subcode=request.subcode)
    return _Decisions(command_of(reason, person)).of


class _Decisions:
    """What a command comes to, worked out once for jobs that are alike and come one after the other."""

    def __init__(self, command: Command) -> None:
        self._command = command
        self._state: Job | None = None
        self._last: tuple[Sequence[JobEvent], Outcome] = (), "bad_status"

    def of(self, _job: JobId, entry: QueuedJob) -> tuple[Sequence[JobEvent], Outcome]:
        """What is to be recorded of a job in this state, and what to answer."""
        if (state := entry.job) is not self._state:
            self._state = state
            try:
                events = decide(state, self._command)
                self._last = events, "done" if events else "already_done"
            except Refused:
                self._last = (), "bad_status"
        return self._last
