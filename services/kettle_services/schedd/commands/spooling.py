"""
Who may send and fetch the files of jobs, and that jobs may run whose files are there.

The files themselves are between the submitter and the shadow, which asks here on behalf of whom it serves.
"""

from collections.abc import Iterator
from typing import Final

from kettle.bus.ports import RefusedError
from kettle.eventsourcing.command_pipeline import Decision
from kettle_services.schedd.domain.authorization import may_manage, refusal
from kettle_services.schedd.domain.jobs.universes import universe_with_all_rights
from kettle_services.schedd.domain.submission import bearers
from kettle_services.schedd.domain.submission.spooling import released
from kettle_services.schedd.queue.chunked_recording import ChunkedRecording
from kettle_services.schedd.queue.recorder import QueueRecorder
from kettle_services.schedd.settings import ScheddSettings
from kettle_services.schedd.shadows.dispatch import ShadowDispatch
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.schedd import FindSpool, ReleaseSpooled, SpooledReleased, SpoolFound
from kettle_wire.identity import Identity
from kettle_wire.jobs import JobId
from kettle_wire.spooling import Procs

_AGAIN_MS: Final = 500
_ALL: Final = 2**31 - 1


class SpoolCommands:
    """Answers `find_spool` and `release_spooled`."""

    def __init__(self, recorder: QueueRecorder, shadows: ShadowDispatch, settings: ScheddSettings) -> None:
        self._recorder = recorder
        self._queue = recorder.queue
        self._shadows = shadows
        self._settings = settings

    async def find(self, request: FindSpool, caller: Identity) -> SpoolFound:
        """Which shadow has the files of a cluster's jobs; `not_found`, `denied` or `unavailable`."""
        for_others = caller.kind == "daemon"
        person, cluster = request.person if for_others else caller.name, request.cluster
        if cluster not in self._queue.clusters:
            raise RefusedError(
                RefusalCode.NOT_FOUND, f"cluster {cluster} is not in the queue of {self._queue.schedd}"
            )
        submitted = self._queue.clusters[cluster].submitted
        owner = submitted.owner
        if not may_manage(person, owner, self._settings.queue_super_users):
            raise RefusedError(RefusalCode.DENIED, refusal(person, f"move files of cluster {cluster}", owner))
        if request.by_job and (
            universe := universe_with_all_rights(submitted.ad, submitted.columns, submitted.rows)
        ):
            raise RefusedError(
                RefusalCode.DENIED,
                f"a running job may not send files for jobs of the {universe.lower()} universe, which run with all "
                f"rights of {owner}: send them yourself, with a credential of your own",
            )
        if request.by_token and (
            why := bearers.refusal_of_files((submitted.ad, submitted.columns, submitted.rows), owner=owner)
        ):
            raise RefusedError(RefusalCode.DENIED, why)
        if for_others:
            return SpoolFound(shadow="", waiting=self._waiting(cluster) if request.waiting else [])
        shadow = self._shadows.any_alive()
        if not shadow:
            raise RefusedError(
                RefusalCode.UNAVAILABLE,
                "no shadow is there yet to take or give the files of jobs",
                retry_after_ms=_AGAIN_MS,
            )
        return SpoolFound(shadow=shadow)

    async def release(self, request: ReleaseSpooled, caller: Identity) -> Decision[SpooledReleased]:
        """
        Release jobs whose input files are all there; others stay as they are. Piece by piece: a repeat does the rest.
        """
        pieces = ChunkedRecording(self._recorder, most=self._settings.max_backlog // 2)
        each = -(-request.size // max(1, sum(procs.count for procs in request.jobs)))
        for procs in request.jobs:
            for job in self._jobs(request.cluster, procs):
                if pieces.full:
                    await pieces.record_chunk()
                entry = self._queue.jobs.get(job)
                if entry is not None and (event := released(entry.job, each)) is not None:
                    pieces.add([job], entry.job, [event])
        return Decision(lambda position: SpooledReleased(position=position), pieces.take_rest())

    def _jobs(self, cluster: int, procs: Procs) -> Iterator[JobId]:
        """The jobs with these numbers that were submitted, whether they are still in the queue or not."""
        known = self._queue.clusters.get(cluster)
        end = 0 if known is None else min(procs.first + procs.count, len(known.submitted.rows))
        return (JobId(cluster, proc) for proc in range(procs.first, end))

    def _waiting(self, cluster: int) -> list[Procs]:
        """The jobs of a cluster that are held for their input files."""
        found: list[Procs] = []
        for job in self._jobs(cluster, Procs(0, _ALL)):
            entry = self._queue.jobs.get(job)
            if entry is None or released(entry.job) is None:
                continue
            last = found[-1] if found else None
            if last is not None and last.first + last.count == job.proc:
                found[-1] = Procs(last.first, last.count + 1)
            else:
                found.append(Procs(job.proc, 1))
        return found
