"""Count what happens in a pool, for Prometheus: http://127.0.0.1:PORT/metrics."""

import asyncio
import json
import os
import secrets
import ssl
import sys
from pathlib import Path
from typing import Any

import nats
from nats.js.api import ConsumerConfig
from prometheus_client import Counter, Histogram, start_http_server

SUBMITTED = Counter("kettle_jobs_submitted", "Jobs that were submitted.", ["owner"])
COMPLETED = Counter("kettle_jobs_completed", "Jobs that ran to their end.", ["owner", "exit_code"])
HELD = Counter("kettle_jobs_held", "Jobs that were held.", ["owner", "code"])
WALL = Histogram(
    "kettle_job_wall_seconds", "How long jobs ran.", buckets=[1, 10, 60, 600, 3600, 21600, 86400]
)
MACHINES = Counter("kettle_machines", "Machines that joined and left.", ["what"])


def count(event: dict[str, Any]) -> None:
    data, owner = event.get("data", {}), event.get("owner", "")
    match event["type"]:
        case "org.kettle.cluster.submitted.v1":
            SUBMITTED.labels(owner).inc(event["jobs"])
        case "org.kettle.job.completed.v2":
            COMPLETED.labels(owner, data["exit"].get("code", "signal")).inc()
            WALL.observe(data.get("usage", {}).get("wall", 0.0))
        case "org.kettle.job.held.v1":
            HELD.labels(owner, data["code"]).inc()
        case "org.kettle.machine.joined.v1" | "org.kettle.machine.left.v1":
            MACHINES.labels(event["type"].split(".")[-2]).inc()


async def main(port: int = 9464) -> None:
    home = Path(os.environ.get("KETTLE_HOME", "~/.kettle")).expanduser()
    pool = json.loads((home / "pool.json").read_text())
    encrypted: dict[str, Any] = {}
    if ca := pool.get("ca"):
        encrypted = {"tls": ssl.create_default_context(cafile=ca), "tls_handshake_first": True}
    bus = await nats.connect(
        pool["nats_url"].split(","),
        user_credentials=pool["credentials"] or None,
        inbox_prefix=f"_INBOX.u-{pool['user']}".encode(),
        **encrypted,
    )
    # The durable consumer remembers what was counted, so a restart counts nothing twice; unused, it lives a week.
    # Who knows its name could read from it, so that is a secret, too.
    name = home / "prometheus-consumer"
    if not name.exists():
        name.touch(mode=0o600)
        name.write_text(f"prometheus-{secrets.token_hex(16)}")
    events = await bus.jetstream(prefix="kettle.js").pull_subscribe(
        ">",
        durable=name.read_text(),
        stream=f"KETTLE_{pool['pool']}_MONITOR",
        config=ConsumerConfig(inactive_threshold=7 * 86400),
    )
    start_http_server(port, "127.0.0.1")
    while True:
        try:
            messages = await events.fetch(1000, timeout=1)
        except TimeoutError:
            continue  # nothing happened
        for message in messages:
            count(json.loads(message.data))
            await message.ack()


asyncio.run(main(*map(int, sys.argv[1:2])))
