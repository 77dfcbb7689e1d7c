"""
The owners of a number of recent clusters.

Events of jobs do not contain the owner. The schedd knows owners that are not here (any more), so nothing here needs to
be kept: neither until the last job of a cluster has left, nor over a restart.
"""

from collections import OrderedDict


class Owners:
    """A bounded memory: beyond `most` clusters, the one that was needed longest ago is forgotten."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._owners: OrderedDict[tuple[str, int], str] = OrderedDict()

    def __len__(self) -> int:
        return len(self._owners)

    def put(self, shard: str, cluster: int, owner: str) -> None:
        """Remember."""
        self._owners[shard, cluster] = owner
        self._owners.move_to_end((shard, cluster))
        if len(self._owners) > self._most:
            self._owners.popitem(last=False)

    def get(self, shard: str, cluster: int) -> str | None:
        """Recall; None if it is not known."""
        owner = self._owners.get((shard, cluster))
        if owner is not None:
            self._owners.move_to_end((shard, cluster))
        return owner
