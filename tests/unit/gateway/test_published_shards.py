"""Of which shards the gateway publishes the events."""

import pytest

from kettle.auth.bus_permissions import SHARDS, permissions
from kettle_services.gateway.domain.cloud_events import is_published
from kettle_wire.identity import daemon
from kettle_wire.subjects import PRIVATE_SHARDS, Subjects


@pytest.mark.parametrize("role", SHARDS)
def test_the_gateway_may_read_the_shards_that_it_publishes(role: str) -> None:
    """And no other; those of which nothing is published are not even asked for."""
    subjects = Subjects("p")
    may, _ = permissions("gateway", subjects, daemon("gateway"))
    for shard in SHARDS[role]:
        reads = any(each.endswith(f".{subjects.events(shard)}") for each in may)
        assert reads == (shard not in PRIVATE_SHARDS and is_published(shard)), shard
