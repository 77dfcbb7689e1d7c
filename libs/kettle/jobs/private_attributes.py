"""
What of a job's ad is for its owner: programs hand tokens and passwords to their jobs in the environment.

Queries leave it out for others. It is no secret of cryptography: the record of events has it, for whoever may read that.
"""

from typing import Final

from kettle_wire.ads import Ad

PRIVATE: Final = frozenset({"environment", "env"})
"""Names of attributes, in lower case."""


def for_others(ad: Ad) -> Ad:
    """The ad as those see it whose job it is not."""
    return {name: value for name, value in ad.items() if name.lower() not in PRIVATE}
