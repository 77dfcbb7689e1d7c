"""What a Prometheus says is firing."""

import asyncio
from datetime import datetime
from typing import Final, Literal

import aiohttp
import msgspec

from kettle_wire.rest.alerts import Alert

WITHIN_S: Final = 5.0
_LARGEST: Final = 4 << 20
"""Bytes of an answer."""


class PrometheusError(Exception):
    """It does not answer, or not as a Prometheus does."""


class _Alert(msgspec.Struct, frozen=True):
    labels: dict[str, str]
    state: Literal["pending", "firing"]
    activeAt: datetime  # noqa: N815 - its name there
    annotations: dict[str, str] = {}


class _Data(msgspec.Struct, frozen=True):
    alerts: list[_Alert]


class _Answer(msgspec.Struct, frozen=True):
    data: _Data


async def alerts_of(session: aiohttp.ClientSession, url: str) -> list[Alert]:
    """Its alerts; raises PrometheusError."""
    try:
        async with (
            asyncio.timeout(WITHIN_S),
            session.get(f"{url.rstrip('/')}/api/v1/alerts", allow_redirects=False) as response,
        ):
            body = await response.content.read(_LARGEST + 1)
            while not response.content.at_eof() and len(body) <= _LARGEST:
                body += await response.content.read(_LARGEST + 1 - len(body))
            if response.status != 200 or len(body) > _LARGEST:
                raise PrometheusError(f"the Prometheus at {url} answers with status {response.status}")
        found = msgspec.json.decode(body, type=_Answer).data.alerts
    except TimeoutError as error:
        raise PrometheusError(f"the Prometheus at {url} has not answered within {WITHIN_S:g} s") from error
    except aiohttp.ClientError as error:
        raise PrometheusError(f"the Prometheus at {url} cannot be asked: {error}") from error
    except msgspec.MsgspecError as error:
        raise PrometheusError(f"what answers at {url} is no Prometheus: {error}") from error
    return [_alert(each) for each in found]


def _alert(said: _Alert) -> Alert:
    labels = dict(said.labels)
    name, severity = labels.pop("alertname", ""), labels.pop("severity", "warning")
    annotations = said.annotations
    return Alert(
        name=name,
        severity=severity,
        state=said.state,
        since=said.activeAt,
        summary=annotations.get("summary") or annotations.get("description") or name,
        runbook=annotations.get("runbook_url") or annotations.get("runbook", ""),
        labels=labels,
    )
