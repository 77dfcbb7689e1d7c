"""What is to be audited."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from kettle.archive import FileArchives
from kettle.audit.sampling import Sample
from kettle.audit.working_set import Fold
from kettle.eventsourcing.log import Tenure
from kettle.storage.archived_pieces import Archives, NoArchives

RECENT_FRAMES: Final = 1_000
"""How far back an audit goes that is not full."""

Folds: TypeAlias = Mapping[str, Callable[[str], Fold]]
"""By kind of shard (its name up to the first dot): makes the fold of the working set of one shard."""


class AuditScope(msgspec.Struct, frozen=True, kw_only=True):
    """The scope of an audit; by default everything."""

    full: bool = True
    """
    From the first frame on, with fresh folds of all that is derived; otherwise the newest frames, without folds.
    """
    shards: frozenset[str] = frozenset()
    """These alone; empty: all."""
    folds: Folds = {}
    sample: int = 0
    """Fold only so many clusters, claims, machines and cycles of each shard, about; 0: all."""
    seed: int = 0
    """Which ones."""
    archive: Path | None = None
    """The archive directory."""

    def after(self, tenure: Tenure) -> int:
        """The frame after which a shard is read."""
        return 0 if self.full else max(0, tenure.frame - RECENT_FRAMES)

    def takes(self, tenure: Tenure) -> bool:
        """Whether a shard is among those wanted."""
        return not self.shards or tenure.shard in self.shards

    def sampled(self, beginnings: int) -> Sample | None:
        """Which streams of a shard are folded, if it is not all."""
        return Sample(self.sample, beginnings, seed=self.seed) if self.sample else None

    def archives(self) -> Archives:
        """What reads archived pieces."""
        return FileArchives(self.archive) if self.archive is not None else NoArchives()
