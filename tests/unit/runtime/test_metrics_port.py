"""Where a service is looked after: who may ask, and how Prometheus finds it."""

import json
import os
from pathlib import Path

import aiohttp
import pytest

from kettle.runtime import Settings, SettingsError
from kettle.runtime.exposition import OPEN_METRICS, PLAIN
from kettle.runtime.measurements import Measurements
from kettle.runtime.metrics_port import serving
from kettle.runtime.telemetry_settings import TelemetrySettings
from kettle_wire.telemetry import process_metrics as metrics


def settings(home: Path, *, key: str = "") -> Settings:
    return Settings(home=str(home), telemetry=TelemetrySettings(metrics=True, key=key))


async def test_prometheus_finds_a_service_while_it_lives(tmp_path: Path) -> None:
    """
    Its file names the port, and labels that stay the same at each start; it goes with the service, unless another process has
    taken its place.
    """
    path = tmp_path / "metrics" / "schedd.schedd.json"
    async with serving("schedd", settings(tmp_path), {}, Measurements(), version="1") as port:
        [target] = json.loads(path.read_text())
        assert [f"127.0.0.1:{port}"] == target["targets"]
        assert f"{os.uname().nodename}/schedd" == target["labels"]["instance"]
        async with serving("schedd", settings(tmp_path), {}, Measurements(), version="1"):
            second = path.read_text()
            assert second != json.dumps([target])
        assert not path.exists()
    assert [] == list(path.parent.iterdir())


async def test_what_is_asked_for_is_answered_in_the_wanted_format(tmp_path: Path) -> None:
    """Health, and metrics in either format."""
    async with (
        serving("schedd", settings(tmp_path), {"bus": lambda: True}, Measurements(), version="1") as port,
        aiohttp.ClientSession(f"http://127.0.0.1:{port}") as client,
    ):
        async with client.get("/readyz") as answer:
            assert {"bus": True} == await answer.json()
        async with client.get("/metrics") as answer:
            assert PLAIN == answer.headers["Content-Type"]
            assert "process_memory_usage_bytes " in await answer.text()
        async with client.get("/metrics", headers={"Accept": "application/openmetrics-text"}) as answer:
            assert OPEN_METRICS == answer.headers["Content-Type"]
            assert (await answer.text()).endswith("# EOF\n")


async def test_with_a_key_only_those_who_have_it_see_metrics(tmp_path: Path) -> None:
    """Everybody else gets 401, and hears nothing of the pool."""
    key = tmp_path / "key"
    key.write_text("of our own\n")
    async with (
        serving("schedd", settings(tmp_path, key=str(key)), {}, Measurements(), version="1") as port,
        aiohttp.ClientSession(f"http://127.0.0.1:{port}") as client,
    ):
        for shown in ({}, {"Authorization": "Bearer of"}, {"Authorization": "Basic of our own"}):
            async with client.get("/metrics", headers=shown) as answer:
                assert 401 == answer.status
                assert metrics.MEMORY.prometheus not in await answer.text()
        async with client.get("/metrics", headers={"Authorization": "bearer of our own"}) as answer:
            assert 200 == answer.status


@pytest.mark.parametrize("content", [None, " \n"])
async def test_a_key_that_cannot_be_used_is_refused(tmp_path: Path, content: str | None) -> None:
    """An empty file must not let everybody in."""
    key = tmp_path / "key"
    if content is not None:
        key.write_text(content)
    with pytest.raises(SettingsError, match=r"\[telemetry\] key: "):
        async with serving("schedd", settings(tmp_path, key=str(key)), {}, Measurements(), version="1"):
            pass


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ('host = "0.0.0.0"', "others can ask for metrics: give key, certificate and certificate_key"),
        ('certificate = "c.pem"', "a certificate and its key are given together"),
        ("metric = true", "unknown field `metric`"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused(tmp_path: Path, table: str, sentence: str) -> None:
    """Metrics are for this machine, unless there is a key and a certificate."""
    path = tmp_path / "kettle.toml"
    path.write_text(f"[telemetry]\nmetrics = true\n{table}\n")
    with pytest.raises(SettingsError) as refused:
        Settings.load("schedd", environ={}, toml_path=path)
    assert sentence in str(refused.value)
    assert str(path) in str(refused.value)
