"""Asking over HTTP as programs do that mean to have an answer."""

import asyncio
from collections.abc import Set as AbstractSet
from http import HTTPStatus
from typing import Final

import aiohttp

from kettle.retry.deadline import Deadline
from kettle.testing.patience import PATIENCE_S

_FOR_NOW: Final = frozenset({HTTPStatus.SERVICE_UNAVAILABLE})
_NOT_YET: Final = _FOR_NOW | {HTTPStatus.BAD_GATEWAY}


async def patiently(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """
    Ask again what is refused only for now: the refusal says so by `Retry-After`, as when tables are behind on a busy machine.
    """
    return await _again(request, handler, _FOR_NOW)


async def until_served(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """
    As `patiently`, and also what is refused because a job's server does not listen yet, or is about to go.
    """
    return await _again(request, handler, _NOT_YET)


async def _again(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType, statuses: AbstractSet[int]
) -> aiohttp.ClientResponse:
    patience = Deadline(PATIENCE_S)
    while True:
        response = await handler(request)
        for_now = response.status in statuses and "Retry-After" in response.headers
        if not for_now or patience.passed:
            return response
        response.release()
        await asyncio.sleep(0.2)
