"""Print the events of a pool, those after a place in the stream (0: all), and go on as they happen."""

import asyncio
import json
import os
import ssl
import sys
from pathlib import Path
from typing import Any

import nats
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy


async def main(place: int = 0) -> None:
    pool = json.loads(Path(os.environ.get("KETTLE_HOME", "~/.kettle"), "pool.json").expanduser().read_text())
    stream, inbox = f"KETTLE_{pool['pool']}_MONITOR", f"_INBOX.u-{pool['user']}".encode()
    urls, credentials = pool["nats_url"].split(","), pool["credentials"] or None
    encrypted: dict[str, Any] = {}
    if ca := pool.get("ca"):
        encrypted = {"tls": ssl.create_default_context(cafile=ca), "tls_handshake_first": True}
    bus = await nats.connect(urls, user_credentials=credentials, inbox_prefix=inbox, **encrypted)
    config = ConsumerConfig(deliver_policy=DeliverPolicy.BY_START_SEQUENCE, ack_policy=AckPolicy.NONE)
    while True:
        config.opt_start_seq = place + 1
        events = await bus.jetstream(prefix="kettle.js").pull_subscribe(">", stream=stream, config=config)
        try:
            while message := (await events.fetch(1, timeout=10))[0]:
                event, place = json.loads(message.data), message.metadata.sequence.stream
                print(place, event["time"], event["type"], event["subject"], event.get("owner"), flush=True)
        except TimeoutError:  # nothing happened, or the bus was away: begin again after the last one
            await events.unsubscribe()


asyncio.run(main(*map(int, sys.argv[1:2])))
