"""What can be set about accounting."""

from typing import Annotated, Literal, TypeAlias

import msgspec

from kettle.runtime import Hidden, Secret, Settings
from kettle.runtime.setting_types import Pause, Seconds
from kettle_services.accounting.store_addresses import check

_Index: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9._-]{0,254}$")]


class AccountingSettings(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`KETTLE_ACCOUNTING_<FIELD>` or the table `[accounting]`."""

    name: str = "accounting"
    seal_directory: str = ""
    """
    Directory of the keys (`*.seal`) with which it opens environments for owners who ask the history; default
    `$KETTLE_HOME/credentials`.
    """
    shard_poll: Seconds = 2.0
    """Seconds between checks for new queues; up to five times as long while none come."""
    databases: Hidden[tuple[str, ...]] = ()
    """Further databases with the event logs of some queues."""
    access_points: tuple[str, ...] = ()
    """Access points with a database of their own, which is asked for their log over the bus; a master names those that have joined."""
    retention_days: Annotated[float, msgspec.Meta(ge=0)] = 0
    """After so many days events move from the database to files below `archive_directory`; 0: never."""
    archiver_url: Secret = ""
    """
    The database as the role that may move its old events to files; empty: `database_url`. A master gives it.
    """
    patience: Pause = 4.0
    """Seconds that a query waits for what its caller has recorded."""
    search_time: Seconds = 2.0
    """Seconds after which a search in the history answers what it has found so far, and where to go on."""
    report_time: Seconds = 60.0
    """Seconds that a report of usage may take."""
    store_url: Secret = ""
    """
    Address of an Elasticsearch or OpenSearch that gets a record of each job that left a queue; empty: none.
    """
    store_index: _Index = "kettle-jobs"
    """The index for the records of jobs."""
    store_attempts: _Index | Literal[""] = ""
    """The index for a record of each attempt; empty: none are sent."""
    store_leases: _Index | Literal[""] = ""
    """
    The index for a record of each leased machine that is gone, with what it has cost; empty: none are sent.
    """
    store_credentials: str = ""
    """
    Path of a file, readable by its owner only, with `{"user": "...", "password": "..."}`, `{"api_key": "..."}` or
    `{"bearer": "..."}`; empty: the store asks for none.
    """
    store_ca: str = ""
    """
    Path of a PEM file with the authorities that vouch for the store; empty: those that this machine trusts.
    """
    store_batch: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 1_000
    """The most records that are sent at once."""
    store_attributes: tuple[str, ...] = ()
    """Further attributes of jobs that are in their records, as text."""
    store_refused: str = ""
    """
    Path of a file to which records are appended that the store refuses; empty: a refused record is sent again until the
    store accepts it, and later records wait.
    """

    def __post_init__(self) -> None:
        if self.store_url and (why := check(self.store_url, self.store_credentials)):
            raise ValueError(why)
