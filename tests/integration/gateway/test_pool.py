"""A whole pool, seen by people and programs that know nothing of it but what the documentation says."""

import asyncio
import json
import os
import re
import sys
import urllib.request
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from cloudevents.core.formats.json import JSONFormat

from kettle.client import select
from kettle.schema_generation import documents
from kettle.schema_generation.catalogue import event_path
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.held_port import held_port
from kettle.testing.services import eventually
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool
from kettle_wire import cloud_events

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
SUBMIT = "executable = /bin/true\ntransfer_executable = false\nqueue 3\n"


@asynccontextmanager
async def example(
    pool: ThrowawayPool, name: str, *arguments: str
) -> AsyncGenerator[asyncio.subprocess.Process]:
    """A program of the documentation, as somebody would run it who has no Kettle."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        str(EXAMPLES / name),
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "KETTLE_HOME": str(pool.home)},
    )
    try:
        yield process
    finally:
        process.kill()
        await process.wait()


def fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
        return str(answer.read().decode())


async def fetched(url: str) -> str:
    try:
        return await asyncio.to_thread(fetch, url)
    except OSError:
        return ""


async def published(pool: ThrowawayPool, *arguments: str) -> list[dict[str, Any]]:
    status, out, err = await pool.kettle("events", "--json", *arguments)
    assert 0 == status, err
    return [json.loads(line) for line in out.splitlines()]


async def test_what_happens_is_seen_by_everybody(tmp_path: Path, template: Path) -> None:
    """
    Three jobs run: the command, a program with a NATS client and one that feeds Prometheus tell the same story.
    """
    assert 36 >= len((EXAMPLES / "watch_events.py").read_text().splitlines())
    port, pages = held_port(), held_port()
    settings: dict[str, dict[str, Any]] = {
        "gateway": {"http_port": pages, "discovery_interval": 0.1},
        "collector": {"classad_lifetime": 900.0},  # a machine that is silent for a moment has not left
    }
    async with throwaway_pool(tmp_path, cpus=2, template=template, settings=settings) as pool:
        user = pool.client.pool.user
        async with (
            asyncio.timeout(PATIENCE_S),
            example(pool, "watch_events.py", "0") as watcher,
            example(pool, "feed_prometheus.py", str(port)),
        ):
            cluster = (await pool.client.submit(SUBMIT)).cluster
            await pool.client.wait(select(cluster))
            assert watcher.stdout is not None
            said: list[str] = []
            while len([line for line in said if "job.completed" in line]) < 3:
                line = (await watcher.stdout.readline()).decode()
                assert line, "the program has ended"
                said.append(line)
            counts = await eventually(lambda: _with(port, "kettle_jobs_completed_total", "3.0"))
            assert re.search(rf'kettle_jobs_submitted_total{{owner="{user}"}} 3.0', counts)
            assert re.search(rf'kettle_jobs_completed_total{{exit_code="0",owner="{user}"}} 3.0', counts)
            await eventually(lambda: _with(port, 'kettle_machines_total{what="joined"}', "1.0"))
            served = await fetched(f"http://127.0.0.1:{pages}/metrics")
            assert 'kettle_gateway_events_total{kind="job.completed"} 3' in served
            schema = json.loads(await fetched(f"http://127.0.0.1:{pages}/schemas/events/job.held.1.json"))
            assert "urn:kettle:event:job.held:1" == schema["$id"]
            assert "3.0" in json.loads(await fetched(f"http://127.0.0.1:{pages}/asyncapi.json"))["asyncapi"]
        events = await published(pool, "--since", "10m")
        _valid(events)
        assert [line.split()[2] for line in said] == [event["type"] for event in events][: len(said)]
        assert {user} == {event["owner"] for event in events if event["type"].startswith("org.kettle.job.")}
        await _chooses(pool, user, cluster, events)


async def _with(port: int, *texts: str) -> str:
    counts = await fetched(f"http://127.0.0.1:{port}/metrics")
    return counts if any(all(text in line for text in texts) for line in counts.splitlines()) else ""


def _valid(events: list[dict[str, Any]]) -> None:
    known = documents()
    for event in events:
        JSONFormat().read(None, json.dumps(event))
        jsonschema.validate(event["data"], known[event_path(cloud_events.TYPES[event["type"]])])


async def _chooses(pool: ThrowawayPool, user: str, cluster: int, events: list[dict[str, Any]]) -> None:
    """The options of the command choose among these events."""
    job = await published(pool, "--since", "0", "--job", f"{cluster}.1")
    assert [event for event in events if event["subject"] in {f"{cluster}.1", f"cluster/{cluster}"}] == job
    machines = await published(pool, "--since", "0", "--type", "machine.*")
    assert [event for event in events if event["type"].startswith("org.kettle.machine.")] == machines
    assert 1 == len(machines)
    mine = await published(pool, "--since", "0", "--owner", user, "--type", "job.completed")
    assert 3 == len(mine)
    assert [] == await published(pool, "--since", "0", "--owner", "nobody-else")
    assert events[2:] == (await published(pool, "--since", "2"))[: len(events) - 2]
    status, out, _ = await pool.kettle("events", "--since", "10m", "--type", "job.completed")
    assert 0 == status
    assert 3 == out.count("exited with code 0")
    status, _, err = await pool.kettle("events", "--since", "yesterday")
    assert 2 == status
    assert "yesterday" in err
    status, _, err = await pool.kettle("events", "1.0", "--owner", user)
    assert 2 == status
    assert "--owner" in err


@pytest.mark.breaks_servers
async def test_following_survives_everything_in_between(tmp_path: Path, template: Path) -> None:
    """
    While `kettle events -f` follows, gateway and bus are killed; it shows every event once and in order.
    """
    settings: dict[str, dict[str, Any]] = {"gateway": {"discovery_interval": 0.1}}
    async with throwaway_pool(tmp_path, cpus=2, template=template, settings=settings) as pool:
        await eventually(lambda: _machines(pool))
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "kettle_services.cli", "events", "-f", "--since", "0", "--json"),
            stdout=asyncio.subprocess.PIPE,
            env={**pool.environ, "KETTLE_HOME": str(pool.home)},
        )
        assert process.stdout is not None
        seen: list[dict[str, Any]] = []
        try:
            async with asyncio.timeout(PATIENCE_S):
                for victim in ("", "gateway", "nats"):
                    if victim:
                        await pool.restarted(victim, after=pool.kill(victim))
                    cluster = (await pool.client.submit(SUBMIT)).cluster
                    done = 0
                    while done < 3:
                        seen.append(json.loads(await process.stdout.readline()))
                        done += (
                            seen[-1]["subject"].startswith(f"{cluster}.") and "completed" in seen[-1]["type"]
                        )
        finally:
            process.terminate()
            await process.wait()
        stored = await published(pool, "--since", "0")
    assert seen == stored[: len(seen)]
    assert len(seen) == len({event["id"] for event in seen})
    _valid(seen)


async def _machines(pool: ThrowawayPool) -> list[dict[str, Any]]:
    return await published(pool, "--since", "0", "--type", "machine.joined")
