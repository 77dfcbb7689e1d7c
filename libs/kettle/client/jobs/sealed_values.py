"""
Environments of jobs that have left their queue, which the history has sealed where it cannot tell people of one name apart.

The queue that has sealed them opens them for their owner; that of another access point is not ours to ask.
"""

from collections.abc import Sequence
from typing import Final

from kettle.client.connections.transport import SIDE_QUESTION_S, Requests
from kettle.client.errors import ClientError
from kettle.jobs.private_attributes import PRIVATE, for_others
from kettle.jobs.sealed_attributes import PREFIX
from kettle_wire.ads.types import Ad, Scalar

_MOST: Final = 1000
"""Values in one question."""


async def opened(requests: Requests, ads: Sequence[Ad]) -> list[Ad]:
    """The ads with the values as they were; without those that nobody opens for us."""
    sealed: dict[str, dict[str, Scalar]] = {}
    for ad in ads:
        for value in _sealed(ad).values():
            sealed.setdefault(_queue(ad), {})[value] = value
    if not sealed:
        return list(ads)
    for queue, values in sealed.items():
        await _open(requests, queue, values)
    return [_with(ad, sealed[_queue(ad)]) if _sealed(ad) else ad for ad in ads]


async def _open(requests: Requests, queue: str, values: dict[str, Scalar]) -> None:
    from kettle_wire.commands.schedd import OPEN_SEALED, OpenSealed

    asked = list(values)
    try:
        for first in range(0, len(asked), _MOST):
            some = asked[first : first + _MOST]
            answer = await requests.ask(
                OPEN_SEALED, OpenSealed(values=some), name=queue, patience=SIDE_QUESTION_S
            )
            values.update(zip(some, answer.values, strict=True))
    except ClientError:
        return  # a queue that is away, or not ours to ask: they stay closed, as they are for others


def _with(ad: Ad, values: dict[str, Scalar]) -> Ad:
    found = {name: values[text] for name, text in _sealed(ad).items()}
    shown = {**ad, **found}
    return for_others(shown) if any(values[text] == text for text in _sealed(ad).values()) else shown


def _sealed(ad: Ad) -> dict[str, str]:
    return {
        name: value
        for name, value in ad.items()
        if isinstance(value, str) and value.startswith(PREFIX) and name.lower() in PRIVATE
    }


def _queue(ad: Ad) -> str:
    """The name of the schedd at whose queue a job was."""
    return str(ad.get("GlobalJobId", "")).partition("#")[0]
