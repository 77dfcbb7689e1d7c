"""Three NATS servers of one cluster: one may die, whichever leads."""

from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from nats.aio.client import Client
from nats.errors import Error
from nats.js import JetStreamContext

from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.embedded import EVERYTHING, of_database
from kettle.testing.servers.nats_cluster import NODES, NatsCluster
from kettle.testing.servers.selection import LANES, lane
from kettle.testing.services import eventually


async def test_the_leader_of_a_stream_may_die(directory: Path) -> None:
    """What was acknowledged is there, the others go on, and the one that comes back has what it missed."""
    async with NatsCluster(directory, permissions=EVERYTHING) as cluster:
        client = Client()
        await client.connect(cluster.url.split(","), user_credentials=str(cluster.credentials("test")))
        try:
            stream = JetStreamContext(client, timeout=PATIENCE_S)

            async def stored(number: bytes) -> bool:
                try:
                    headers = {"Nats-Msg-Id": number.decode()}
                    return (await stream.publish("evt.a", number, timeout=1.0, headers=headers)).seq == int(
                        number
                    )
                except Error:
                    return False

            async def leaders() -> list[int]:
                """Who leads it, if the server that is asked knows it already."""
                found = await cluster.leaders()
                return [found["evt"]] if "evt" in found else []

            await cast("Any", stream).add_stream(name="evt", subjects=["evt.>"], num_replicas=NODES)
            await eventually(partial(stored, b"1"))  # a new stream elects one first
            (leader,) = await eventually(leaders)
            await cluster.kill(leader)

            await eventually(partial(stored, b"2"))

            async def other() -> bool:
                return leader not in (await leaders() or [leader])

            await eventually(other)
            await cluster.restart(leader)
            assert 2 == (await stream.stream_info("evt")).state.messages
        finally:
            await client.close()


def test_a_lane_that_is_not_there_is_named() -> None:
    """
    Without the variable each test has its own servers; a wrong one is refused with those that there are.
    """
    assert "embedded" == lane({})
    assert list(LANES) == [lane({"KETTLE_TEST_SERVERS": name}) for name in LANES]
    with pytest.raises(ValueError, match="embedded, external, cluster, containers"):
        lane({"KETTLE_TEST_SERVERS": "mine"})


@pytest.mark.parametrize(
    ("url", "other"),
    [
        (
            "postgresql://kettle@/kettle?host=%2Ftmp&passfile=p",
            "postgresql://kettle@/new?host=%2Ftmp&passfile=p",
        ),
        ("postgresql:///kettle?host=/tmp", "postgresql:///new?host=/tmp"),
        ("postgres://a:b@db.example.org:5433/site", "postgres://a:b@db.example.org:5433/new"),
    ],
)
def test_a_fresh_database_is_on_the_same_server(url: str, other: str) -> None:
    """Only the name changes in its URL."""
    assert other == of_database(url, "new")
