"""
Send every event of a pool to an OpenSearch or Elasticsearch, once each: feed_opensearch.py http://127.0.0.1:9200.
"""

import asyncio
import json
import os
import secrets
import ssl
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import nats
from nats.js.api import ConsumerConfig

INDEX = "kettle-events"
LONGEST_PAUSE_S = 60.0


def send(url: str, events: dict[str, bytes]) -> dict[str, Any]:
    """
    The answer of the store by id of the event, which is the id of its document: sent twice it is the same one.
    """
    lines = [
        part + b"\n"
        for name, event in events.items()
        for part in (json.dumps({"index": {"_index": INDEX, "_id": name}}).encode(), event)
    ]
    headers = {"Content-Type": "application/x-ndjson"}
    if authorization := os.environ.get("STORE_AUTHORIZATION"):  # "ApiKey ...", "Basic ..."
        headers["Authorization"] = authorization
    request = urllib.request.Request(f"{url}/_bulk", b"".join(lines), headers)  # noqa: S310 - the address is our own
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - as above
        items = [item["index"] for item in json.load(answer)["items"]]
    return {item["_id"]: item for item in items}


async def deliver(url: str, events: dict[str, bytes]) -> None:
    """Until the store has all of them, or has said of the rest that it never takes them."""
    pause = 0.5
    while events:
        try:
            answers = await asyncio.to_thread(send, url, events)
        except (OSError, ValueError, KeyError) as error:  # it is away, or something else answers there
            print(f"the store: {error}; tried again in {pause} s", file=sys.stderr)
            answers = {}
        for name, item in answers.items():
            if item["status"] < 300:
                del events[name]
            elif item["status"] != 429 and item["status"] < 500:
                print(f"refused: {name}: {item['error']}", file=sys.stderr)
                del events[name]
        if events:
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_S)


async def main(url: str) -> None:
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
    # The durable consumer remembers on the server what the store has, so a restart goes on there; unused, it lives a week.
    # Who knows its name could read from it, so that is a secret, too.
    name = home / "opensearch-consumer"
    if not name.exists():
        name.touch(mode=0o600)
        name.write_text(f"opensearch-{secrets.token_hex(16)}")
    events = await bus.jetstream(prefix="kettle.js").pull_subscribe(
        ">",
        durable=name.read_text(),
        stream=f"KETTLE_{pool['pool']}_MONITOR",
        config=ConsumerConfig(ack_wait=5, inactive_threshold=7 * 86400),
    )
    while True:
        try:
            messages = await events.fetch(500, timeout=1)
        except TimeoutError:
            continue  # nothing happened
        await deliver(url, {json.loads(message.data)["id"]: message.data for message in messages})
        for message in messages:
            await message.ack()


asyncio.run(main(sys.argv[1].rstrip("/")))
