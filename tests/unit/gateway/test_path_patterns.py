"""Paths of routes, as the web server matches them."""

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from kettle_services.gateway.rest.path_patterns import pattern
from kettle_wire.rest.catalogue import ROUTES


def application() -> web.Application:
    """One that answers with nothing, at all paths."""

    async def answer(request: web.Request) -> web.Response:
        raise NotImplementedError(request)

    made = web.Application()
    for route in ROUTES:
        made.router.add_route(route.method, pattern(route, ROUTES), answer)
    made.freeze()
    return made


ROUTER = application().router


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/v2/workflows/12/graph", {"GET"}),
        ("PATCH", "/v2/sessions/lab:restart", {"POST"}),
        ("GET", "/v2/machines/node7:cancel_drain", {"POST"}),
        ("PUT", "/v2/pools/lab:pause", {"POST"}),
    ],
)
async def test_a_path_has_the_methods_of_its_own_routes_and_no_others(
    method: str, path: str, allowed: set[str]
) -> None:
    """Where a word of one route could be a value of another one, the word counts."""
    found = await ROUTER.resolve(make_mocked_request(method, path))
    assert isinstance(found.http_exception, web.HTTPMethodNotAllowed)
    assert allowed == found.http_exception.allowed_methods


@pytest.mark.parametrize(
    ("method", "path", "values"),
    [
        ("POST", "/v2/workflows/12/nonsense", {"id": "12", "action": "nonsense"}),
        ("GET", "/v2/machines/slot1@node7:2", {"name": "slot1@node7:2"}),
        ("GET", "/v2/sessions/restart", {"id": "restart"}),
        ("GET", "/v2/jobs/1.0/files/a/b:c", {"id": "1.0", "path": "a/b:c"}),
    ],
)
async def test_other_words_are_values(method: str, path: str, values: dict[str, str]) -> None:
    """What no route has there is a value, which its handler may refuse in words."""
    found = await ROUTER.resolve(make_mocked_request(method, path))
    assert found.http_exception is None
    assert values == dict(found)
