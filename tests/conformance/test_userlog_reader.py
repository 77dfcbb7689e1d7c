"""
What we write of transfers, read by HTCondor's own reader.
"""

from datetime import UTC
from pathlib import Path

import pytest

from kettle.userlog import FileTransfer, render
from kettle.wire.jobs import JobId

htcondor2 = pytest.importorskip("htcondor2", reason="HTCondor's bindings, from the package htcondor")


def test_htcondor_reads_transfers(tmp_path: Path) -> None:
    """
    All six kinds, with the wait and the host.
    """
    log = tmp_path / "log"
    events = [
        FileTransfer(job=JobId(1, 0), at=1_790_000_000 + kind, kind=kind, queued=kind, host="<10.0.0.9:9618>")
        if kind in {2, 5}
        else FileTransfer(job=JobId(1, 0), at=1_790_000_000 + kind, kind=kind)
        for kind in range(1, 7)
    ]
    log.write_text("".join(render(event, UTC) for event in events))

    with htcondor2.JobEventLog(str(log)) as reader:
        read = [(int(event.type), event["Type"], dict(event)) for event in reader.events(stop_after=0)]
    assert [(40, kind) for kind in range(1, 7)] == [(number, kind) for number, kind, _ in read]
    assert [2, 5] == [ad["QueueingDelay"] for _, _, ad in read if "QueueingDelay" in ad]
    assert {"<10.0.0.9:9618>"} == {ad["Host"] for _, _, ad in read if "Host" in ad}
