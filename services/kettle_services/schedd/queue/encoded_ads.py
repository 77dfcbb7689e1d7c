"""Ads of jobs as they travel: each is encoded as it is made, and none is kept."""

from collections.abc import Sequence
from typing import Final, cast

import msgspec

from kettle.bus.large_requests import LARGEST
from kettle.bus.ports import RefusedError
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.domain.queue.job_ads import QueuedJobAds
from kettle_services.schedd.queue.ad_reader import AdReader
from kettle_wire.ads import Ad
from kettle_wire.codes import RefusalCode
from kettle_wire.jobs import JobId

_encode_into: Final = msgspec.msgpack.Encoder().encode_into
_ARRAY: Final = b"\xdd"
"""How an array begins in MessagePack, before four bytes with the number of its elements."""


class EncodedAds:
    """The ads of an answer, or some of their attributes."""

    def __init__(
        self, queue: Queue, names: Sequence[str], reader: AdReader, *, largest: int = LARGEST
    ) -> None:
        """`largest`: bytes of an answer."""
        self._largest = largest
        self._reader = reader
        self._view = QueuedJobAds(queue, names)
        self._data = bytearray(_ARRAY + bytes(4))
        self.count = 0

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self._data)

    def add(self, job: JobId) -> None:
        """The ad of a job in the queue, as the reader may see it."""
        _encode_into(self._reader.seen(job, self._view.ad(job)), self._data, -1)
        self.count += 1

    def require_room(self) -> None:
        """Raises RefusedError if they are more than the bus carries."""
        if self.size > self._largest:
            raise RefusedError(
                RefusalCode.TOO_LARGE,
                f"the ads take more than {self._largest:,} bytes; ask for them page by page, or for fewer attributes",
            )

    def encoded(self) -> list[Ad]:
        """All of them, in the place of the list that they are."""
        self._data[1:5] = self.count.to_bytes(4)
        return cast("list[Ad]", msgspec.Raw(bytes(self._data)))
