"""What infra/prometheus and infra/grafana ask for is what services say, and every alert has a page."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kettle_wire.telemetry.metrics import METRICS

SERIES = {name for metric in METRICS for name in metric.series} | {"up", "ALERTS"}
LABELS = {attribute.label for metric in METRICS for attribute in metric.attributes}
OF_TARGETS = {"instance", "job", "pool", "service", "alertname", "alertstate", "severity", "slo", "le"}


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        package = {"promtool": "prometheus", "amtool": "prometheus-alertmanager"}[name]
        pytest.skip(f"{name} is not installed (Debian: {package})")
    return found


def accepted(*command: str, cwd: Path) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stdout + done.stderr


def dashboards(top: Path) -> dict[str, Any]:
    return {path.name: json.loads(path.read_text()) for path in (top / "infra/grafana/dashboards").iterdir()}


def expressions(top: Path) -> dict[str, str]:
    """Every query of a rule or of a panel, by where it stands."""
    found = {
        f"{name}: {panel['title']}": " ".join(target["expr"] for target in panel["targets"])
        for name, dashboard in dashboards(top).items()
        for panel in dashboard["panels"]
    }
    for path in (top / "infra/prometheus/rules").iterdir():
        rules = re.split(r"^      - (?=alert:|record:)", path.read_text(), flags=re.MULTILINE)[1:]
        for rule in rules:
            name, _, rest = rule.partition("\n")
            body = re.search(r"^        expr: (\|\n(?:          .*\n)+|.*\n)", f"{rest}\n", re.MULTILINE)
            assert body, name
            found[f"{path.name}: {name}"] = body[1]
    return found


def recorded(top: Path) -> set[str]:
    """The names of recording rules."""
    text = (top / "infra/prometheus/rules/recording.yml").read_text()
    return set(re.findall(r"record: (\S+)", text))


def test_every_query_asks_for_metrics_that_there_are(top: Path) -> None:
    """A metric that is renamed takes the panels and rules along that ask for it."""
    known = SERIES | recorded(top)
    asked = expressions(top)
    assert len(asked) > 80
    for place, expression in asked.items():
        without_texts = re.sub(r'"[^"]*"', '""', expression)
        names = set(re.findall(r"\b(?:kettle|process|http)[\w:]*\b(?!=)", without_texts)) - LABELS
        assert names or "up{" in expression or "ALERTS" in expression or "vector" in expression, place
        assert set() == names - known, place
        labels = set(re.findall(r"(\w+)\s*(?:=~|!=|=)\s*\"", expression))
        assert set() == labels - LABELS - OF_TARGETS, place


def test_every_metric_is_on_a_dashboard(top: Path) -> None:
    """What is measured can be seen."""
    shown = " ".join(expressions(top).values())
    assert [] == [metric.name for metric in METRICS if not any(name in shown for name in metric.series)]


def test_every_alert_has_a_section_and_a_test(top: Path) -> None:
    """Who is woken at night finds what to do, and the alert fires when it should."""
    rules = (top / "infra/prometheus/rules/alerts.yml").read_text()
    alerts = re.findall(r"- alert: (\w+)", rules)
    page = (top / "docs/how-to/answer-alerts.md").read_text()
    assert alerts == re.findall(r"^## (\w+)$", page, re.MULTILINE)
    assert [f"docs/how-to/answer-alerts.md#{alert.lower()}" for alert in alerts] == re.findall(
        r"runbook: (\S+)", rules
    )
    cases = (top / "infra/prometheus/tests/alerts.yml").read_text()
    assert set(alerts) == set(re.findall(r"alertname: (\w+)\n", cases))
    assert set(alerts) == set(re.findall(r"alertname: (\w+), eval_time: \w+, exp_alerts: \[\]", cases))


def test_dashboards_are_what_grafana_imports(top: Path) -> None:
    """Unique ids, panels that do not cover each other, and a data source that can be chosen."""
    found = dashboards(top)
    assert len(found) == len({each["uid"] for each in found.values()}) == 7
    for name, dashboard in found.items():
        assert {"datasource", "pool"} == {each["name"] for each in dashboard["templating"]["list"]}
        cells: set[tuple[int, int]] = set()
        for panel in dashboard["panels"]:
            place = panel["gridPos"]
            assert place["x"] + place["w"] <= 24, name
            own = {
                (x, y)
                for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])
            }
            assert set() == cells & own, f"{name}: {panel['title']}"
            cells |= own
            assert all("${datasource}" == target["datasource"]["uid"] for target in panel["targets"])


def test_prometheus_takes_the_rules_and_the_configuration(top: Path) -> None:
    """As promtool sees them."""
    place = top / "infra/prometheus"
    accepted(program("promtool"), "check", "rules", *(str(p) for p in (place / "rules").iterdir()), cwd=place)
    accepted(program("promtool"), "check", "config", "prometheus.yml", cwd=place)


def test_alerts_fire_when_they_should(top: Path) -> None:
    """Each of them, and none of them in a healthy pool."""
    accepted(program("promtool"), "test", "rules", "infra/prometheus/tests/alerts.yml", cwd=top)


def test_alertmanager_takes_its_configuration(top: Path) -> None:
    """As amtool sees it, critical alerts reach those who are awake at night."""
    place = top / "infra/prometheus"
    accepted(program("amtool"), "check-config", "alertmanager.yml", cwd=place)
    routed = subprocess.run(
        [
            program("amtool"),
            "config",
            "routes",
            "test",
            "--config.file=alertmanager.yml",
            "severity=critical",
        ],
        cwd=place,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "operators-at-night" == routed.stdout.strip()
