"""What somebody should look at, as Prometheus tells it, and where its runbooks lead."""

from typing import Any

import aiohttp
import pytest
from aiohttp import web

from kettle.runtime.http_server import serving
from kettle_services.gateway.pages.pool.alerts import address_of
from kettle_services.gateway.rest.prometheus_alerts import PrometheusError, alerts_of

FIRING = {
    "labels": {"alertname": "KettleServiceDown", "instance": "ap:9100", "severity": "critical"},
    "annotations": {"summary": "ap:9100 (schedd) does not answer", "runbook": "docs/how-to/answer-alerts.md#kettleservicedown"},
    "state": "firing",
    "activeAt": "2026-11-25T14:00:00.123456789Z",
    "value": "0e+00",
}  # fmt: skip
PENDING = {"labels": {"alertname": "Odd"}, "state": "pending", "activeAt": "2026-11-25T14:00:00Z"}


async def answered(answer: Any, status: int = 200) -> Any:
    """What is made of an answer of a Prometheus."""
    application = web.Application()

    async def alerts(_request: web.Request) -> web.Response:
        return web.json_response(answer, status=status, headers={"Location": "/elsewhere"})

    application.router.add_get("/prometheus/api/v1/alerts", alerts)
    async with serving(application, "127.0.0.1", 0) as port, aiohttp.ClientSession() as session:
        return await alerts_of(session, f"http://127.0.0.1:{port}/prometheus/")


async def test_alerts_are_those_of_prometheus() -> None:
    """Name, severity, since when, what and where to read on are told as its rules say them."""
    firing, pending = await answered({"status": "success", "data": {"alerts": [FIRING, PENDING]}})
    assert ("KettleServiceDown", "critical", "firing") == (firing.name, firing.severity, firing.state)
    assert "ap:9100 (schedd) does not answer" == firing.summary
    assert {"instance": "ap:9100"} == firing.labels
    assert 2026 == firing.since.year
    assert ("Odd", "Odd", "warning", "pending", "") == (
        pending.name, pending.summary, pending.severity, pending.state, pending.runbook,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "status", "says"),
    [
        ({"status": "error"}, 503, "answers with status 503"),
        ({"data": []}, 200, "is no Prometheus"),
        ({}, 302, "answers with status 302"),
    ],
)
async def test_what_is_no_answer_is_said(answer: Any, status: int, says: str) -> None:
    """One that refuses, is something else or leads elsewhere is not believed, and named."""
    with pytest.raises(PrometheusError, match=says):
        await answered(answer, status)


async def test_one_that_is_away_is_named() -> None:
    """Nobody listens there."""
    async with aiohttp.ClientSession() as session:
        with pytest.raises(PrometheusError, match=r"the Prometheus at http://127\.0\.0\.1:1 cannot be asked"):
            await alerts_of(session, "http://127.0.0.1:1")


@pytest.mark.parametrize(
    ("runbook", "documentation", "address"),
    [
        ("docs/how-to/a.md#x", "https://docs.example.org/kettle/", "https://docs.example.org/kettle/how-to/a.md#x"),
        ("docs/how-to/a.md#x", "", ""),
        ("https://wiki.example.org/x", "", "https://wiki.example.org/x"),
        ("javascript:alert(1)", "https://docs.example.org", ""),
        ("//evil.example", "https://docs.example.org", ""),
        ("", "https://docs.example.org", ""),
    ],
)  # fmt: skip
def test_runbooks_lead_only_to_pages(runbook: str, documentation: str, address: str) -> None:
    """What rules say is followed where it is an address of the web or a page of the documentation."""
    assert address == address_of(runbook, documentation)
