"""Parts of pages that are sent again."""

from types import SimpleNamespace
from typing import cast

import pytest
from aiohttp.test_utils import make_mocked_request

from kettle_services.gateway.pages.live import LiveParts, TableWatch
from kettle_services.gateway.rest.admission import Admission
from kettle_services.gateway.rest.application import Asked
from kettle_services.gateway.rest.job_tables import JobTables
from kettle_services.gateway.rest.persons import Person
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_services.gateway.rest.streams import Streams


async def test_one_person_watches_so_many_pages() -> None:
    """One more is refused before its answer begins, and says what to do; somebody else's is not."""
    streams = Streams(2, most_of_one=1)
    live = LiveParts(TableWatch(cast("JobTables", None)), streams)

    async def part() -> str:
        raise AssertionError("nobody is shown it")

    async def still() -> None:
        raise AssertionError("nobody is looked up again so soon")

    def asked(name: str) -> Asked:
        person = cast("Person", SimpleNamespace(name=name, expires=0.0))  # whose credential is over by now
        return Asked(person, None, None, make_mocked_request("GET", "/"), admission=Admission(still))

    with streams.one_more("ada"):
        with pytest.raises(RequestRefused, match="close one") as refused:
            await live.send(asked("ada"), part)
        assert 200 == (await live.send(asked("eve"), part)).status
    assert 429 == refused.value.status
    assert 0 == streams.count
