"""What can be set about accounting."""

from kettle.runtime import Settings


class AccountingSettings(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`KETTLE_ACCOUNTING_<FIELD>` or the table `[accounting]`."""

    name: str = "accounting"
    shard_poll: float = 2.0
    """Seconds between looks for new queues."""
    patience: float = 4.0
    """Seconds that a query waits for what its asker has recorded."""
