"""What can be set about accounting."""

from typing import Annotated

import msgspec

from kettle.runtime import Hidden, Settings


class AccountingSettings(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`KETTLE_ACCOUNTING_<FIELD>` or the table `[accounting]`."""

    name: str = "accounting"
    shard_poll: float = 2.0
    """Seconds between looks for new queues."""
    databases: Hidden[tuple[str, ...]] = ()
    """Further databases with the event logs of some queues."""
    retention_days: Annotated[float, msgspec.Meta(ge=0)] = 0
    """After so many days events move from the database to files below `archive_directory`; 0: never."""
    patience: float = 4.0
    """Seconds that a query waits for what its asker has recorded."""
    search_time: float = 2.0
    """Seconds after which a search in the history answers what it has found so far, and where to go on."""
    report_time: float = 60.0
    """Seconds that a report of usage may take."""
