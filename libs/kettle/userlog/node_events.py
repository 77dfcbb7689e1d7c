"""
014 and 015: what happens to one node of a job of several, as lines like those of a job that name the node.
"""

from kettle.userlog.event_to_ad import HEAD, TYPES, attributes
from kettle.userlog.events import Executing, Other, Terminated
from kettle.userlog.rendering import body
from kettle.userlog.usage import cpu_times
from kettle_wire.ads.types import Ad
from kettle_wire.attempts import ExitRecord, Usage
from kettle_wire.jobs import JobId

_EXECUTE, _TERMINATED = 14, 15


def node_executing(node: int, executing: Executing) -> Other:
    """The program of a node runs."""
    lines = [f"Node {node} executing on host: {executing.host}", *body(executing)[1:]]
    return _of_node(_EXECUTE, node, executing, lines, {})


def node_terminated(node: int, job: JobId, ran: ExitRecord, usage: Usage, at: float) -> Other:
    """The program of a node has run to its end."""
    times, sent, received = cpu_times(usage), usage.sent, usage.received
    terminated = Terminated(
        job=job,
        at=at,
        exit=ran,
        run_remote=times,
        total_remote=times,
        sent=sent,
        received=received,
        total_sent=sent,
        total_received=received,
    )
    lines = [line.replace(" By Job", " By Node") for line in body(terminated)[1:]]
    unknown: Ad = {"ReturnValue": -1, "TerminatedBySignal": -1}
    return _of_node(_TERMINATED, node, terminated, [f"Node {node} terminated.", *lines], unknown)


def _of_node(kind: int, node: int, event: Executing | Terminated, lines: list[str], unknown: Ad) -> Other:
    own = {name: value for name, value in attributes(event).items() if name not in HEAD}
    head: Ad = {"MyType": TYPES[kind], "Node": node}
    ids = f"{event.job.cluster:03d}.{event.job.proc:03d}.{node:03d}"
    return Other(job=event.job, at=event.at, kind=kind, ids=ids, lines=lines, ad=head | unknown | own)
