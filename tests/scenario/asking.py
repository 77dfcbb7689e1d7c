"""Asking over HTTP as programs do that mean to have an answer."""

import asyncio
from http import HTTPStatus

import aiohttp

from kettle.retry.deadline import Deadline
from kettle.testing.patience import PATIENCE_S


async def patiently(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """
    Ask again what is refused only for now: the refusal says so by `Retry-After`, as when tables are behind on a busy machine.
    """
    patience = Deadline(PATIENCE_S)
    while True:
        response = await handler(request)
        for_now = response.status == HTTPStatus.SERVICE_UNAVAILABLE and "Retry-After" in response.headers
        if not for_now or patience.passed:
            return response
        response.release()
        await asyncio.sleep(0.2)
