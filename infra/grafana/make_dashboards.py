"""
Makes the dashboards of Grafana of `dashboards.toml`; `docs/generate.py` writes them into `infra/grafana/dashboards`.
"""

from pathlib import Path
from typing import Any, Final, Literal

import msgspec

Kind = Literal["timeseries", "stat", "table"]
_WIDTH: Final = 24
_HEIGHT: Final = 8


class Panel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One picture."""

    title: str
    queries: dict[str, str]
    """By what the legend says."""
    unit: str = "short"
    kind: Kind = "timeseries"
    width: int = 8
    empty: str = ""
    """Why it may show nothing although all is well."""


class Dashboard(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One page of pictures."""

    name: str
    title: str
    panels: tuple[Panel, ...]


DASHBOARDS: Final = msgspec.toml.decode(
    Path(__file__).with_name("dashboards.toml").read_bytes(), type=dict[str, tuple[Dashboard, ...]]
)["dashboards"]


def documents() -> dict[str, dict[str, Any]]:
    """File name -> dashboard, as Grafana imports and provisions it."""
    return {f"{each.name}.json": _document(each) for each in DASHBOARDS}


def _document(dashboard: Dashboard) -> dict[str, Any]:
    return {
        "uid": f"kettle-{dashboard.name}",
        "title": dashboard.title,
        "tags": ["kettle"],
        "schemaVersion": 38,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [
                {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"},
                {
                    "name": "pool",
                    "label": "Pool",
                    "type": "query",
                    "datasource": _SOURCE,
                    "query": "label_values(kettle_service_ready, pool)",
                    "refresh": 2,
                    "includeAll": True,
                    "multi": True,
                    "allValue": ".*",
                    "current": {"text": "All", "value": "$__all"},
                },
            ]
        },
        "links": [
            {
                "type": "dashboards",
                "title": "Kettle",
                "tags": ["kettle"],
                "asDropdown": True,
                "keepTime": True,
            }
        ],
        "panels": _panels(dashboard.panels),
    }


_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


def _panels(panels: tuple[Panel, ...]) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    x = y = height = 0
    for number, panel in enumerate(panels, start=1):
        if x + panel.width > _WIDTH:
            x, y, height = 0, y + height, 0
        own = _HEIGHT // 2 if panel.kind == "stat" else _HEIGHT
        place = {"h": own, "w": panel.width, "x": x, "y": y}
        x, height = x + panel.width, max(height, own)
        made.append(_panel(number, panel, place))
    return made


def _panel(number: int, panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": f"Empty: {panel.empty}." if panel.empty else "",
        "datasource": _SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + index),
                "datasource": _SOURCE,
                "expr": expression.replace("POOL", 'pool=~"$pool"').replace("RATE", "$__rate_interval"),
                "legendFormat": legend,
                **({"instant": True, "format": "table"} if panel.kind == "table" else {}),
            }
            for index, (legend, expression) in enumerate(panel.queries.items())
        ],
    }
