"""The page of what somebody should look at."""

from typing import Final
from urllib.parse import urlsplit

import msgspec

from kettle_services.gateway.pages.page import Link, Page, Shown
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.rest.application import Asked
from kettle_wire.rest.alerts import LIST_ALERTS, Alert, Alerts, ListAlerts
from kettle_wire.rest.route import Moment


class AskedAlerts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which alerts: all."""

    as_of: Moment | None = None


class Row(msgspec.Struct, frozen=True):
    """An alert."""

    alert: Alert
    address: str
    """Of what to do; empty: that is no address that a browser may be led to."""


class AlertsView(msgspec.Struct, frozen=True, kw_only=True):
    """The page."""

    found: Alerts
    rows: list[Row]


ALERTS: Final = Page(
    "/alerts",
    "Alerts",
    template="pool/alerts.html",
    parameters=AskedAlerts,
    link=Link("Administration", 5),
    only_now=True,
)


class AlertPages:
    """Shows it."""

    def __init__(self, questions: Questions, documentation: str) -> None:
        """`documentation`: the address under which pages of the documentation are; empty: none."""
        self._questions: Final = questions
        self._documentation: Final = documentation

    async def alerts(self, asked: Asked) -> Shown:
        """All of them."""
        found = await self._questions.ask(asked, LIST_ALERTS, ListAlerts(), Alerts)
        rows = [Row(each, address_of(each.runbook, self._documentation)) for each in found.alerts]
        return Shown(AlertsView(found=found, rows=rows))


def address_of(runbook: str, documentation: str) -> str:
    """Where a runbook is: rules of a site may say anything, and only addresses of the web are followed."""
    if urlsplit(runbook).scheme in {"http", "https"}:
        return runbook
    if documentation and runbook.startswith("docs/"):
        return f"{documentation.rstrip('/')}/{runbook.removeprefix('docs/')}"
    return ""
