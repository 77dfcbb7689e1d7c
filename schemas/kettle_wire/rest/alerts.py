"""What somebody should look at."""

from typing import Literal

import msgspec

from kettle_wire.rest.route import Moment, Route


class ListAlerts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    List what somebody should look at, the worst first: the alerts of the site's Prometheus if the gateway knows one (`prometheus_url`),
    else what the gateway can tell itself: daemons that do not run, machines that were lost, jobs that are held, its own disk.
    """


class Alert(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that somebody should look at."""

    name: str
    """Of the rule."""
    severity: str
    """`critical`, `warning`, or what the rules of the site say."""
    state: Literal["firing", "pending"] = "firing"
    """`pending`: it is so, but not for long enough."""
    since: Moment
    summary: str
    runbook: str = ""
    """Where it is said what to do: an address, or a page of the documentation; absent: nowhere."""
    labels: dict[str, str] = {}
    """What it is about, as Prometheus has it."""


class Alerts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Alerts, the worst first, and of these the oldest."""

    source: Literal["prometheus", "gateway"]
    """Whose word it is."""
    alerts: list[Alert]
    trouble: str = ""
    """Why Prometheus was not asked successfully, or why the gateway cannot tell everything."""


LIST_ALERTS = Route("GET", "/alerts", "list_alerts", parameters=ListAlerts, reply=Alerts)
