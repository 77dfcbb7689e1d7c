"""How a job of a session comes through the gateway to the others."""

import time
from typing import cast

import pytest

from kettle.client.errors import ClientError, PoolUnreachableError
from kettle.client.published import StreamNotOpenedError
from kettle.client.sessions import OwnSession
from kettle.dask import job_membership
from kettle.dask.job_membership import WayOfJob
from kettle_wire.commands.gateway import AccessMade


class Given:
    """Counts how often it is asked for what is shown."""

    def __init__(self) -> None:
        self.times = 0

    async def access(self) -> AccessMade:
        self.times += 1
        return AccessMade(url="http://127.0.0.1:1", token="t", expires=time.time() + 3600)


@pytest.mark.parametrize(
    ("error", "times"),
    [
        (StreamNotOpenedError("service.no_tunnel", "it has no tunnel yet", 503), 1),
        (StreamNotOpenedError("token.untrusted", "it is none of ours", 401), 3),
        (PoolUnreachableError("nobody answers"), 3),
    ],
)
async def test_something_new_is_shown_only_where_that_helps(
    error: ClientError, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many workers that wait for one service do not have something made for each of their tries."""

    async def refused(_job: str, _service: str, *, access: object) -> None:
        del access
        raise error

    monkeypatch.setattr(job_membership, "open_stream", refused)
    given = Given()
    way = WayOfJob(cast("OwnSession", given))
    for _ in range(3):
        with pytest.raises(ConnectionError):
            await way.open_stream("1.0", "dask")
    assert times == given.times
