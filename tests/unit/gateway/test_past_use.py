"""What pages of the past say about who used the pool."""

from datetime import UTC, datetime
from typing import Any, cast

from aiohttp.test_utils import make_mocked_request

from kettle.auth.mapping.policy import Mapped
from kettle.auth.mapping.principals import local
from kettle_services.gateway.pages.pool.past_use import OwnersThen, owners_then
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.persons import Person
from kettle_wire.rest.jobs import LIST_JOBS, GroupCount, Jobs

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


async def test_who_ran_most_stands_first() -> None:
    """Each owner has a row with the jobs in each state; who had nothing running comes after all who had."""
    questioned: list[Any] = []
    counts = [
        ("ada", "idle", 900),
        ("bob", "running", 2),
        ("ada", "held", 1),
        ("eve", "running", 7),
        ("bob", "idle", 4),
    ]

    async def answer(asked: Asked) -> Answer:
        questioned.append(asked.parameters)
        groups = [
            GroupCount(key={"owner": owner, "state": state}, count=count) for owner, state, count in counts
        ]
        return Answer(Jobs(groups=groups))

    ada = Person(local("ada"), Mapped(owner="ada", domain="pool"))
    asked = Asked(ada, None, None, make_mocked_request("GET", "/"))
    questions = Questions({LIST_JOBS: answer}, lambda _person, _level: None)
    view = cast("OwnersThen", (await owners_then(questions, asked, NOON, [])).view)
    assert ["eve", "bob", "ada"] == [owner.name for owner in view.owners]
    assert {"idle": 900, "held": 1} == view.owners[-1].counts
    assert [NOON] == [each.as_of for each in questioned]
