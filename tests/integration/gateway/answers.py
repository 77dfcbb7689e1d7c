"""Answers of the REST interface as a program reads them, from handlers without a web server."""

from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import msgspec
from aiohttp.test_utils import make_mocked_request

from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.persons import Person


async def ask(
    handler: Callable[[Asked], Awaitable[Answer]],
    parameters: msgspec.Struct,
    *,
    name: str = "ada",
    headers: dict[str, str] | None = None,
    by_model: bool = False,
    body: msgspec.Struct | None = None,
) -> tuple[Any, str]:
    """The answer as a program reads it, and its entity tag."""
    request = make_mocked_request("GET", "/", headers=headers or {})
    person = cast("Person", SimpleNamespace(name=name))
    answer = await handler(Asked(person, parameters, body, request, by_model=by_model))
    kind = cast("type[msgspec.Struct]", type(answer.reply))
    return msgspec.json.decode(msgspec.json.encode(answer.reply), type=kind), answer.etag
