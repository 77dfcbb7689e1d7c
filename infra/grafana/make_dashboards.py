"""
The dashboards of Grafana, declared in few words; `docs/generate.py` writes them into `infra/grafana/dashboards`.

In a query `POOL` stands for the choice of pools, `RATE` for the window of a rate.
"""

from typing import Any, Final, Literal

import msgspec

Kind = Literal["timeseries", "stat", "table"]
_WIDTH: Final = 24
_HEIGHT: Final = 8


class Panel(msgspec.Struct, frozen=True, kw_only=True):
    """One picture."""

    title: str
    queries: dict[str, str]
    """By what the legend says."""
    unit: str = "short"
    kind: Kind = "timeseries"
    width: int = 8
    empty: str = ""
    """Why it may show nothing although all is well."""


class Dashboard(msgspec.Struct, frozen=True, kw_only=True):
    """One page of pictures."""

    name: str
    title: str
    panels: tuple[Panel, ...]


def _rate(metric: str, by: str, labels: str = "") -> str:
    inside = ", ".join(filter(None, ("POOL", labels)))
    return f"sum by ({by}) (rate({metric}{{{inside}}}[RATE]))"


def _quantile(q: float, metric: str, by: str = "") -> str:
    labels = ", ".join(filter(None, (by, "le")))
    return f"histogram_quantile({q}, sum by ({labels}) (rate({metric}_bucket{{POOL}}[RATE])))"


OVERVIEW: Final = Dashboard(
    name="overview",
    title="Kettle: overview",
    panels=(
        Panel(
            title="Services that work",
            kind="stat",
            width=4,
            queries={"ready": "sum(kettle_service_ready{POOL})"},
        ),
        Panel(
            title="Services that do not answer",
            kind="stat",
            width=4,
            queries={"down": 'sum(up{job="kettle"} == bool 0)'},
        ),
        Panel(
            title="Machines",
            kind="stat",
            width=4,
            queries={"machines": "sum(kettle_collector_machines{POOL})"},
        ),
        Panel(
            title="Running jobs",
            kind="stat",
            width=4,
            queries={"running": 'sum(kettle_schedd_jobs{POOL, state="running"})'},
        ),
        Panel(
            title="Idle jobs",
            kind="stat",
            width=4,
            queries={"idle": 'sum(kettle_schedd_jobs{POOL, state="idle"})'},
        ),
        Panel(
            title="Held jobs",
            kind="stat",
            width=4,
            queries={"held": 'sum(kettle_schedd_jobs{POOL, state="held"})'},
        ),
        Panel(title="Jobs", queries={"{{state}}": "sum by (state) (kettle_schedd_jobs{POOL})"}),
        Panel(
            title="Jobs that end",
            unit="ops",
            queries={"{{outcome}}": _rate("kettle_schedd_jobs_ended_total", "outcome")},
        ),
        Panel(title="Slots", queries={"{{state}}": "sum by (state) (kettle_collector_slots{POOL})"}),
        Panel(
            title="Nodes of workflows",
            queries={"{{state}}": "sum by (state) (kettle_dagman_nodes{POOL})"},
            empty="no DAG has run lately",
        ),
        Panel(
            title="Interactive sessions",
            queries={
                "{{kind}} {{state}}": "sum by (kind, state) (kettle_sessions_sessions{POOL})",
                "workers {{state}}": "sum by (state) (kettle_sessions_workers{POOL})",
            },
            empty="nobody has a session",
        ),
        Panel(
            title="Error budget in use",
            unit="percentunit",
            queries={
                "{{pool}} {{slo}}": "kettle:slo_errors:ratio_rate1h{POOL} / on (slo) group_left () kettle:slo_budget"
            },
        ),
        Panel(
            title="Lost time of machines",
            unit="percentunit",
            queries={"{{pool}}": "kettle:wasted_wall_time:ratio_rate1h{POOL}"},
        ),
        Panel(
            title="Alerts",
            kind="table",
            queries={"alerts": 'ALERTS{alertstate="firing", alertname=~"Kettle.*"}'},
            empty="nothing is wrong",
        ),
    ),
)

QUEUE: Final = Dashboard(
    name="queue",
    title="Kettle: queue",
    panels=(
        Panel(title="Jobs by state", queries={"{{instance}} {{state}}": "kettle_schedd_jobs{POOL}"}),
        Panel(
            title="Jobs submitted",
            unit="ops",
            queries={"{{instance}}": _rate("kettle_schedd_jobs_submitted_total", "instance")},
        ),
        Panel(
            title="Attempts that end",
            unit="ops",
            queries={"{{outcome}}": _rate("kettle_schedd_attempts_ended_total", "outcome")},
        ),
        Panel(
            title="Wait until the first start",
            unit="s",
            queries={
                "half of the jobs": _quantile(0.5, "kettle_schedd_job_wait_seconds"),
                "19 of 20": _quantile(0.95, "kettle_schedd_job_wait_seconds"),
            },
        ),
        Panel(title="Claims", queries={"{{instance}}": "kettle_schedd_claims{POOL}"}),
        Panel(title="Attempts looked after", queries={"{{instance}}": "kettle_shadow_attempts{POOL}"}),
        Panel(
            title="Files sent",
            unit="Bps",
            queries={
                "by shadows": _rate("kettle_shadow_input_sent_bytes_total", "pool"),
                "into the object store": _rate("kettle_shadow_objects_sent_bytes_total", "pool"),
            },
        ),
        Panel(title="Transfers that wait", queries={"{{instance}}": "kettle_shadow_transfers_waiting{POOL}"}),
        Panel(
            title="Files by URL, by what served them",
            unit="Bps",
            queries={"{{source}}": _rate("kettle_schedd_files_bytes_total", "source")},
            empty="no job has moved files by URL",
        ),
        Panel(
            title="Files by URL",
            unit="ops",
            queries={
                "{{source}}, had already: {{hit}}": _rate("kettle_schedd_files_moved_total", "source, hit"),
                "failed": _rate("kettle_schedd_files_failed_total", "pool"),
            },
            empty="no job has moved files by URL",
        ),
        Panel(
            title="Jobs by submitter",
            kind="table",
            queries={"{{submitter}}": "sum by (submitter, state) (kettle_schedd_submitter_jobs{POOL})"},
            empty="`owners = true` in [telemetry] is needed, and jobs in the queue",
        ),
    ),
)

MACHINES: Final = Dashboard(
    name="machines",
    title="Kettle: machines",
    panels=(
        Panel(title="Machines", queries={"{{pool}}": "sum by (pool) (kettle_collector_machines{POOL})"}),
        Panel(title="Slots by state", queries={"{{state}}": "sum by (state) (kettle_collector_slots{POOL})"}),
        Panel(title="Cores", queries={"{{state}}": "sum by (state) (kettle_startd_cpus{POOL})"}),
        Panel(title="Claims", queries={"{{activity}}": "sum by (activity) (kettle_startd_claims{POOL})"}),
        Panel(
            title="Machines that drain", queries={"{{pool}}": "sum by (pool) (kettle_startd_draining{POOL})"}
        ),
        Panel(title="Ads", queries={"{{type}}": "sum by (type) (kettle_collector_ads{POOL})"}),
        Panel(
            title="Free disk of the pool's directory",
            unit="bytes",
            queries={"{{instance}}": "kettle_master_disk_free_bytes{POOL}"},
        ),
    ),
)

NEGOTIATOR: Final = Dashboard(
    name="negotiator",
    title="Kettle: negotiator",
    panels=(
        Panel(
            title="Cycles",
            unit="ops",
            queries={"{{pool}}": _rate("kettle_negotiator_cycle_duration_seconds_count", "pool")},
        ),
        Panel(
            title="Length of a cycle",
            unit="s",
            queries={
                "half of them": _quantile(0.5, "kettle_negotiator_cycle_duration_seconds"),
                "99 of 100": _quantile(0.99, "kettle_negotiator_cycle_duration_seconds"),
            },
        ),
        Panel(
            title="Matches and rejections",
            unit="ops",
            queries={
                "matches": _rate("kettle_negotiator_matches_total", "pool"),
                "rejections": _rate("kettle_negotiator_rejections_total", "pool"),
            },
        ),
        Panel(title="Submitters", queries={"{{pool}}": "kettle_negotiator_submitters{POOL}"}),
        Panel(
            title="Slots that could be given", queries={"{{pool}}": "kettle_negotiator_candidate_slots{POOL}"}
        ),
        Panel(title="Idle jobs seen", queries={"{{pool}}": "kettle_negotiator_idle_jobs{POOL}"}),
    ),
)

SERVICES: Final = Dashboard(
    name="services",
    title="Kettle: services",
    panels=(
        Panel(
            title="Commands", unit="ops", queries={"{{service}} {{outcome}}": "kettle:commands:rate5m{POOL}"}
        ),
        Panel(
            title="Commands by verb",
            unit="ops",
            queries={
                "{{service}} {{endpoint}}": _rate(
                    "kettle_command_duration_seconds_count", "service, endpoint"
                )
            },
        ),
        Panel(
            title="Commands, 99 of 100",
            unit="s",
            queries={"{{service}}": "kettle:command_duration:p99_5m{POOL}"},
        ),
        Panel(
            title="Refusals",
            unit="ops",
            queries={"{{service}} {{code}}": _rate("kettle_command_refusals_total", "service, code")},
            empty="nothing is refused",
        ),
        Panel(
            title="HTTP",
            unit="ops",
            queries={
                "{{http_route}} {{http_response_status_code}}": _rate(
                    "http_server_request_duration_seconds_count", "http_route, http_response_status_code"
                )
            },
            empty="nobody asks over HTTP",
        ),
        Panel(
            title="Services of jobs",
            queries={
                "jobs that publish": "sum by (pool) (kettle_gateway_tunnels{POOL})",
                "connections {{via}}": "sum by (via) (kettle_gateway_service_connections{POOL})",
                "refusals": "sum by (pool) (increase(kettle_gateway_service_refusals_total{POOL}[RATE]))",
            },
            empty="no job publishes a service",
        ),
        Panel(
            title="Bytes of services of jobs",
            unit="Bps",
            queries={"{{direction}}": _rate("kettle_gateway_service_bytes_total", "direction")},
            empty="nobody uses a service of a job",
        ),
        Panel(
            title="Wrong credentials",
            unit="ops",
            queries={"{{pool}}": _rate("kettle_iam_refusals_total", "pool")},
        ),
        Panel(
            title="Commits",
            unit="ops",
            queries={"{{service}}": _rate("kettle_event_log_append_duration_seconds_count", "service")},
        ),
        Panel(
            title="Events committed",
            unit="ops",
            queries={"{{service}}": _rate("kettle_event_log_events_total", "service")},
        ),
        Panel(
            title="Commits, 99 of 100",
            unit="s",
            queries={"{{service}}": _quantile(0.99, "kettle_event_log_append_duration_seconds", "service")},
        ),
        Panel(title="Events not yet committed", queries={"{{instance}}": "kettle_schedd_backlog{POOL}"}),
        Panel(
            title="Cores in use",
            unit="percentunit",
            queries={"{{instance}}": "rate(process_cpu_time_seconds_total{POOL}[RATE])"},
        ),
        Panel(title="Memory", unit="bytes", queries={"{{instance}}": "process_memory_usage_bytes{POOL}"}),
        Panel(title="Open files", queries={"{{instance}}": "process_open_file_descriptor_count{POOL}"}),
        Panel(
            title="Event loop, 99 of 100",
            unit="s",
            queries={"{{instance}}": "kettle:event_loop_lag:p99_5m{POOL}"},
        ),
        Panel(
            title="Connections to NATS",
            queries={
                "connected": "sum(kettle_bus_connected{POOL})",
                "came back": "sum(increase(kettle_bus_reconnections_total{POOL}[RATE]))",
            },
        ),
        Panel(
            title="Starts of services",
            queries={
                "{{daemon}}": "sum by (daemon) (increase(kettle_master_daemon_starts_total{POOL}[RATE]))"
            },
        ),
        Panel(
            title="Hangs of services",
            queries={
                "{{daemon}}": "sum by (daemon) (increase(kettle_master_daemon_hangs_total{POOL}[RATE]))"
            },
        ),
        Panel(
            title="Services by status",
            queries={"{{status}}": "sum by (status) (kettle_master_daemons{POOL})"},
        ),
        Panel(
            title="Time since the start", unit="s", queries={"{{instance}}": "process_uptime_seconds{POOL}"}
        ),
        Panel(
            title="Expressions given up",
            unit="ops",
            queries={"{{service}}": _rate("kettle_expression_given_up_total", "service")},
        ),
    ),
)

ACCOUNTING: Final = Dashboard(
    name="accounting",
    title="Kettle: accounting",
    panels=(
        Panel(
            title="Cores delivered and wasted",
            queries={"{{use}}": _rate("kettle_schedd_job_cpu_time_seconds_total", "use")},
        ),
        Panel(
            title="Time on machines, in cores",
            queries={"{{use}}": _rate("kettle_schedd_job_wall_time_seconds_total", "use")},
        ),
        Panel(title="Frames that tables lack", queries={"{{shard}}": "kettle_projection_lag{POOL}"}),
        Panel(title="Tables that stand still", queries={"{{pool}}": "kettle_projection_stopped{POOL}"}),
        Panel(
            title="Events published",
            unit="ops",
            queries={"{{kind}}": _rate("kettle_gateway_events_total", "kind")},
        ),
        Panel(
            title="Delay of published events",
            unit="s",
            queries={"99 of 100": _quantile(0.99, "kettle_gateway_delay_seconds")},
        ),
        Panel(title="Last published frame", queries={"{{shard}}": "kettle_gateway_frame{POOL}"}),
        Panel(
            title="Sessions of publishing",
            queries={"{{instance}}": "increase(kettle_gateway_sessions_total{POOL}[RATE])"},
        ),
    ),
)

POOLS: Final = Dashboard(
    name="pools",
    title="Kettle: pools of workers",
    panels=(
        Panel(
            title="Machines wanted, coming and ready",
            queries={"{{worker_pool}} {{phase}}": "kettle_scaler_machines{POOL}"},
            empty="there is no pool of workers",
        ),
        Panel(
            title="Leases by state",
            queries={"{{state}}": "sum by (state) (kettle_scaler_leases{POOL})"},
            empty="no machine is leased",
        ),
        Panel(
            title="Machines of static pools, by how they are",
            queries={"{{worker_pool}} {{state}}": "kettle_scaler_static_machines{POOL}"},
            empty="no static pool hibernates",
        ),
        Panel(
            title="Jobs that wait, by what becomes of them",
            queries={"{{state}}": "sum by (state) (kettle_scaler_demand{POOL})"},
        ),
        Panel(
            title="Orders of machines",
            unit="ops",
            queries={"{{provider}} {{result}}": _rate("kettle_scaler_creates_total", "provider, result")},
            empty="no machine was ordered lately",
        ),
        Panel(
            title="From the plan to a machine that takes jobs",
            unit="s",
            queries={
                "{{worker_pool}} {{offer}}, half of them": _quantile(
                    0.5, "kettle_scaler_machine_start_seconds", "worker_pool, offer"
                ),
                "{{worker_pool}} {{offer}}, 19 of 20": _quantile(
                    0.95, "kettle_scaler_machine_start_seconds", "worker_pool, offer"
                ),
            },
            empty="no machine has become ready lately",
        ),
        Panel(
            title="Oldest order without an answer",
            unit="s",
            queries={"{{pool}}": "max by (pool) (kettle_scaler_intent_age_seconds{POOL})"},
        ),
        Panel(
            title="Offers",
            queries={"{{worker_pool}} {{state}}": "sum by (worker_pool, state) (kettle_scaler_offers{POOL})"},
            empty="there is no pool of workers",
        ),
        Panel(
            title="Providers that are not used as usual",
            kind="table",
            queries={"{{provider}} {{state}}": 'kettle_scaler_providers{POOL, state!="open"} == 1'},
            empty="all are used",
        ),
        Panel(
            title="Spent today (UTC)",
            queries={"{{worker_pool}} {{currency}}": "kettle_scaler_spent{POOL}"},
            empty="no pool has prices",
        ),
        Panel(
            title="Part of the day's budget in use",
            unit="percentunit",
            queries={"{{worker_pool}}": "kettle_scaler_spent{POOL} / kettle_scaler_budget{POOL}"},
            empty="no pool has a budget",
        ),
        Panel(
            title="Plans",
            unit="ops",
            queries={"{{pool}}": _rate("kettle_scaler_plan_duration_seconds_count", "pool")},
        ),
        Panel(
            title="Length of a plan, 99 of 100",
            unit="s",
            queries={"{{pool}}": _quantile(0.99, "kettle_scaler_plan_duration_seconds", "pool")},
        ),
        Panel(
            title="Machines that no lease wants",
            queries={"{{provider}}": "sum by (provider) (increase(kettle_scaler_orphans_total{POOL}[RATE]))"},
            empty="none was found",
        ),
        Panel(
            title="Calls of providers",
            unit="ops",
            queries={
                "{{provider}} {{call}} {{outcome}}": _rate(
                    "kettle_provisioner_call_duration_seconds_count", "provider, call, outcome"
                )
            },
        ),
        Panel(
            title="Calls of providers, 19 of 20",
            unit="s",
            queries={
                "{{provider}} {{call}}": _quantile(
                    0.95, "kettle_provisioner_call_duration_seconds", "provider, call"
                )
            },
        ),
        Panel(
            title="Calls in a second that providers get",
            unit="ops",
            queries={"{{instance}} {{provider}}": "kettle_provisioner_rate{POOL}"},
        ),
        Panel(
            title="Providers that can be used",
            queries={"{{instance}} {{provider}}": "kettle_provisioner_usable{POOL}"},
        ),
    ),
)

DASHBOARDS: Final = (OVERVIEW, QUEUE, MACHINES, NEGOTIATOR, SERVICES, ACCOUNTING, POOLS)


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
