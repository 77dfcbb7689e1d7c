"""What a gateway has published, in numbers."""

from collections import Counter
from collections.abc import Iterator

from kettle_services.gateway.domain.batch import Batch


class Metrics:
    """Counts since the process began."""

    def __init__(self) -> None:
        self.events: Counter[str] = Counter()
        """By `noun.verb`: events stored."""
        self.frames: dict[str, int] = {}
        """By shard: the number of the last frame of which events are stored."""
        self.sessions = 0
        """How many sessions it has started, including the first."""

    def add(self, batch: Batch) -> None:
        """Count what was stored."""
        self.events.update(".".join(post.subject.rsplit(".", 2)[1:]) for post in batch.posts)
        self.frames.update((shard, mark.frame) for shard, mark in batch.marks.items())

    def prometheus(self) -> str:
        """The counts in the text format of Prometheus."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        yield "# HELP kettle_gateway_events_total Events that were published for monitoring."
        yield "# TYPE kettle_gateway_events_total counter"
        for kind, number in sorted(self.events.items()):
            yield f'kettle_gateway_events_total{{kind="{kind}"}} {number}'
        yield "# HELP kettle_gateway_frame The last frame of a shard of which events were published."
        yield "# TYPE kettle_gateway_frame gauge"
        for shard, number in sorted(self.frames.items()):
            yield f'kettle_gateway_frame{{shard="{_escaped(shard)}"}} {number}'
        yield "# HELP kettle_gateway_sessions_total How many sessions the gateway has started."
        yield "# TYPE kettle_gateway_sessions_total counter"
        yield f"kettle_gateway_sessions_total {self.sessions}"


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
