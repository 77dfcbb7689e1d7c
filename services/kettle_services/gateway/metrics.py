"""What a gateway has published, in numbers."""

import time
from typing import Final

from kettle.runtime import Telemetry
from kettle_services.gateway.domain.batch import Batch
from kettle_wire.telemetry import gateway_metrics as metrics

_MICROSECOND: Final = 1e-6


class Metrics:
    """Counts since the process began."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._events = telemetry.counter(metrics.PUBLISHED)
        self._sessions = telemetry.counter(metrics.SESSIONS)
        self._delays = telemetry.histogram(metrics.PUBLISHED_DELAY)
        self._frames: dict[str, int] = {}
        """By shard: the number of the last frame of which events are stored."""
        telemetry.observe(
            metrics.PUBLISHED_FRAME,
            lambda: {(shard,): float(frame) for shard, frame in self._frames.items()},
        )

    def begin_session(self) -> None:
        """Count a session of publishing, also the first."""
        self._sessions.add(1)

    def add(self, batch: Batch) -> None:
        """Count what is stored now."""
        now = time.time()
        for at in batch.times:
            self._delays.record(max(0.0, now - at * _MICROSECOND))
        for post in batch.posts:
            self._events.add(1, ".".join(post.subject.rsplit(".", 2)[1:]))
        self._frames.update((shard, mark.frame) for shard, mark in batch.marks.items())
