"""
Attributes of a job's ad that are only for its owner: programs pass tokens and passwords to their jobs in the
environment, and in that of its tasks.

Queries leave them out for others; what is recorded of them is sealed (`kettle.jobs.sealed_attributes`).
"""

from typing import Final

from kettle_wire.ads import Ad

PRIVATE: Final = frozenset({
    "environment", "env", "kettletasks", "prominencedocument", "prominenceparameters", "prominenceworkflow",
})  # fmt: skip
"""Names of attributes, in lower case."""


def for_others(ad: Ad) -> Ad:
    """The ad as those see it whose job it is not."""
    return {name: value for name, value in ad.items() if name.lower() not in PRIVATE}
