"""How many jobs were in the queues at a time of the past, from what is counted minute by minute."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

import msgspec

from kettle_services.gateway.rest.job_rows import SCHEDD
from kettle_services.gateway.rest.job_tables import QUERIES, Reading
from kettle_services.gateway.rest.refusals import refused_field
from kettle_wire.rest.jobs import GroupCount, ListJobs, State

_STATES: Final[tuple[State, ...]] = ("idle", "running", "removed", "held")
"""Those that are counted."""
_ANSWERED: Final = frozenset({"as_of", "at_least", "group_by", "owner", "schedd", "state"})
"""Parameters that counts of the past can follow."""
_GROUPS: Final = frozenset({"owner", "state", "schedd"})


def require_counted(asked: ListJobs) -> None:
    """Raises RequestRefused: it is not about what was counted."""
    usual = ListJobs()
    more = [
        name
        for name, value in msgspec.structs.asdict(asked).items()
        if name not in _ANSWERED and value != getattr(usual, name)
    ]
    if more or not asked.group_by or not _GROUPS.issuperset(asked.group_by):
        what = f", and not {more[0]}" if more else ""
        raise refused_field(
            "/query/as_of",
            "counts of the past are by owner, state or schedd, and besides by owner, state and schedd only"
            f"{what}; without group_by the jobs themselves are listed",
        )


async def counted(reading: Reading, asked: ListJobs) -> list[GroupCount]:
    """How many there were of each combination, the most first."""
    shards = [SCHEDD + name for name in asked.schedd]
    counts: Counter[tuple[str, ...]] = Counter()
    for row in await reading.fetch(QUERIES["queues_at"], asked.as_of, asked.owner, shards):
        for state in asked.state or _STATES:
            if state in _STATES and (count := row[state]):
                key: Mapping[str, str] = {
                    "owner": row["owner"],
                    "state": state,
                    "schedd": row["shard"].removeprefix(SCHEDD),
                }
                counts[tuple(key[name] for name in asked.group_by)] += count
    return [
        GroupCount(key=dict(zip(asked.group_by, values, strict=True)), count=count)
        for values, count in sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    ]
