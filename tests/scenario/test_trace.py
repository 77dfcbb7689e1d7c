"""One job is one trace, through every service that has to do with it."""

import asyncio
import json
from pathlib import Path

import msgspec

from kettle.client import select
from kettle.jobs import traceparent
from kettle.storage import PgLog
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import throwaway_pool
from kettle_wire.jobs import JobId


async def test_one_job_is_one_trace(tmp_path: Path, template: Path) -> None:
    """
    The spans of schedd, shadow and startd about a job, and the metadata of its recorded events, carry one trace id.
    """
    spans_file = tmp_path / "spans.jsonl"
    settings = {"kettle": {"trace_file": str(spans_file)}}
    async with throwaway_pool(tmp_path, cpus=2, template=template, settings=settings) as pool:
        submitted = await pool.client.submit("executable = /bin/true\nqueue 2\n", cwd=tmp_path)
        async with asyncio.timeout(PATIENCE_S):
            await pool.client.wait(select(submitted.cluster))
        job = JobId(submitted.cluster, 1)
        async with PgLog.connect(pool.client.pool.database_url) as log:
            recorded = await log.stream("schedd.schedd", f"job/{job}")

    _, trace, parent, _ = traceparent("schedd", job).split("-")
    spans = [json.loads(line) for line in spans_file.read_text().splitlines()]
    mine = {span["name"] for span in spans if span["trace"] == trace}
    others = [span for span in spans if span["attributes"].get("job") == str(job) and span["trace"] != trace]
    metas = [msgspec.msgpack.decode(frame.entries[0].meta, type=dict[str, str]) for frame, _ in recorded]

    assert {"schedd.assign", "shadow.attempt", "startd.attempt"} <= mine
    assert [] == others
    assert {f"00-{trace}-{parent}-01"} == {meta["traceparent"] for meta in metas}
