"""
What the frames of a shard come to: every pure fold of the product, as plain values that are kept as JSON.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC
from pathlib import PurePosixPath
from typing import Any, Final

import msgspec

from kettle.eventsourcing.projection import decoded_events
from kettle.eventsourcing.state_record import fold_frame as fold_states
from kettle.jobs.history import JobHistory
from kettle.userlog.projector import UserLogProjector
from kettle_services.ce.domain.state import CeState
from kettle_services.collector.domain.machine_presence import absence, fold, row_of
from kettle_services.dagman.domain.workflow import Workflow
from kettle_services.dagman.record import workflow_event
from kettle_services.iam.domain.audit import act
from kettle_services.iam.domain.state import Register
from kettle_services.iam.record import identity_event
from kettle_services.negotiator.accountant import fold_frame
from kettle_services.negotiator.domain.principals import Principal
from kettle_services.negotiator.domain.verdicts import Verdicts
from kettle_services.scaler.domain.state import ScalerState
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.domain.queue.saved_jobs import saved
from kettle_services.schedd.domain.submission.cluster import Cluster
from kettle_services.sessions.domain.state import SessionsState
from kettle_wire.ads.types import Ad
from kettle_wire.commands.iam import AuditEntry
from kettle_wire.events import CycleNegotiated, WorkflowStarted, decode
from kettle_wire.frames import Frame

Folded = dict[str, Any]


def queue(frames: Sequence[Frame]) -> Queue:
    """The queue of a schedd."""
    folded = Queue(_name(frames))
    for frame in frames:
        for entry in frame.entries:
            folded.apply(entry.stream, decode(entry.data), frame.at)
    return folded


def working_set(frames: Sequence[Frame]) -> dict[str, bytes]:
    """The rows from which a schedd would start."""
    folded, rows = Queue(_name(frames)), dict[str, bytes]()
    for frame in frames:
        for entry in frame.entries:
            for change in folded.apply(entry.stream, decode(entry.data), frame.at):
                if change.state is None:
                    rows.pop(change.stream, None)
                else:
                    rows[change.stream] = change.state
    return rows


def _mask(cluster: Cluster) -> int:
    """Bit `p`: job `p` has left."""
    return sum(1 << proc for proc in range(cluster.made) if proc in cluster.gone)


def shown(folded: Queue) -> Folded:
    """A queue in full."""
    return {
        "newest_cluster": folded.newest_cluster,
        "tally": folded.tally.by_submitter,
        "clusters": {number: [each.size, _mask(each), each.at] for number, each in folded.clusters.items()},
        "jobs": {str(job): [saved(entry.job), folded.ad(job)] for job, entry in folded.jobs.items()},
        "claims": {
            name: [claim.granted.startd, claim.granted.slot, claim.granted.lease, claim.at, str(claim.job)]
            for name, claim in folded.claims.items()
        },
        "requests": {submitter: folded.demand.requests(submitter) for submitter in folded.demand.on_machines},
    }


def _schedd(frames: Sequence[Frame]) -> Folded:
    past = JobHistory(_name(frames))
    projector = UserLogProjector("127.0.0.1:9618", zone=UTC)
    logs: dict[PurePosixPath, str] = {}
    for frame in frames:
        past.feed(*decoded_events(frame))
        for line in projector.feed(frame):
            logs[line.path] = logs.get(line.path, "") + line.text
    changes = past.apply_event()
    return {
        "queue": shown(queue(frames)),
        "history": changes.departed,
        "usage": changes.spent,
        "user_logs": {path.name: text.splitlines() for path, text in logs.items()},
    }


def _negotiator(frames: Sequence[Frame]) -> Folded:
    record, principals = Verdicts(), dict[str, Principal]()
    for frame in frames:
        for entry in frame.entries:
            event = decode(entry.data)
            if isinstance(event, CycleNegotiated):
                record.fold(event)
        fold_frame(principals, frame)
    found: Folded = {
        "cycle": record.cycle,
        "rejected": sorted(record.rejected.items()),
        "verdicts": list(record._said.items()),  # pyright: ignore[reportPrivateUsage] - all of them
    }
    return found | ({"principals": principals} if principals else {})


def _collector(frames: Sequence[Frame]) -> Folded:
    joined, kept = set[str](), dict[str, list[Ad]]()
    for frame in frames:
        for entry in frame.entries:
            event = decode(entry.data)
            fold(joined, event)
            kept[entry.stream] = absence(row_of(event))
    found: Folded = {"machines": sorted(joined)}
    silent = {stream: ads for stream, ads in kept.items() if ads and stream.startswith("registered/")}
    return found | ({"silent": silent} if silent else {})


def _identity(frames: Sequence[Frame]) -> Folded:
    register, audited = Register(), list[AuditEntry]()
    for frame in frames:
        for entry in frame.entries:
            event = identity_event(entry)
            register.apply(entry.stream, event)
            audited.append(act(event, at=frame.at / 1e6, frame=frame.number))
    return {
        "states": {stream: [type(state).__name__, state] for stream, state in register.states.items()},
        "audit": [
            [each.what, each.who, each.whom, each.sentence, each.address, each.alarm] for each in audited
        ],
    }


def _dagman(frames: Sequence[Frame]) -> Folded:
    workflows: dict[int, Workflow] = {}
    for frame in frames:
        for entry in frame.entries:
            event = workflow_event(entry)
            if isinstance(event, WorkflowStarted):
                workflows[event.workflow] = Workflow(event)
            else:
                workflows[int(entry.stream.partition("/")[2])].apply(event)
    return {
        str(number): {
            "states": list(each.states),
            "attempts": list(each.attempts),
            "values": each.values,
            "orders": list(each.orders),
            "clusters": list(each.clusters.values()),
            "deferred": list(each.deferred.values()),
            "options": each.options,
            "ended": each.ended,
        }
        for number, each in workflows.items()
    }


def _scaler(frames: Sequence[Frame]) -> Folded:
    state = ScalerState()
    for frame in frames:
        fold_states(state, frame)
    return {stream: msgspec.msgpack.decode(row) for stream, row in state.rows()}


def _ce(frames: Sequence[Frame]) -> Folded:
    state = CeState()
    for frame in frames:
        fold_states(state, frame)
    return {stream: msgspec.msgpack.decode(row) for stream, row in state.rows()}


def _sessions(frames: Sequence[Frame]) -> Folded:
    state = SessionsState()
    for frame in frames:
        fold_states(state, frame)
    return {stream: msgspec.msgpack.decode(row) for stream, row in state.rows()}


_FOLDS: Final[Mapping[str, Callable[[Sequence[Frame]], Folded]]] = {
    "schedd": _schedd,
    "negotiator": _negotiator,
    "collector": _collector,
    "identity": _identity,
    "dagman": _dagman,
    "scaler": _scaler,
    "ce": _ce,
    "sessions": _sessions,
}


def expected(shards: Mapping[str, Sequence[Frame]]) -> bytes:
    """
    What all shards come to, after half of their frames and after all, as a text that a diff can be made of.
    """
    found: Folded = {
        shard: {
            f"after frame {after}": _FOLDS[shard.partition(".")[0]](frames[:after])
            for after in (len(frames) // 2, len(frames))
            if after
        }
        for shard, frames in shards.items()
    }
    plain = msgspec.to_builtins(found, str_keys=True)
    return msgspec.json.format(msgspec.json.encode(plain, order="deterministic"), indent=1) + b"\n"


def _name(frames: Sequence[Frame]) -> str:
    return frames[0].shard.partition(".")[2]
