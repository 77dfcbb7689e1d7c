"""A real client of a scheduler of Dask that a job publishes itself, by TLS and the name."""

# distributed has no types:
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportGeneralTypeIssues=false, reportUnknownLambdaType=false

import socket
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from distributed import Client, Scheduler, Worker
from distributed.comm.core import connect
from distributed.security import Security

from kettle.testing.patience import PATIENCE_S

from .published_parts import job_side
from .tls_programs import DOMAIN, Shown, tls_gateway


async def test_a_client_of_dask_computes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    As the page about it says: functions go there and results of megabytes come back, and to a job of others nobody comes.
    """
    look_up = socket.getaddrinfo

    def here(host: Any, *rest: Any, **more: Any) -> Any:
        return look_up("127.0.0.1" if str(host).endswith(DOMAIN) else host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", here)
    local: dict[str, Any] = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    async with (
        tls_gateway(tmp_path) as made,
        Scheduler(port=0, dashboard=False, **local) as scheduler,
        Worker(scheduler.address, nthreads=1, dashboard=False, **local),
        job_side(made.of_http.port, f"dask:{scheduler.port}/tcp"),
    ):
        made.of_http.jobs.put(described="dask:1/tcp")
        address = f"tls://{made.name('dask')}:{made.port}"
        mine, others = [security(tmp_path, await made.shown(person)) for person in ("alice", "bob")]
        async with Client(address, security=mine, asynchronous=True, timeout=PATIENCE_S) as client:
            assert 144 == await client.submit(lambda n: n * n, 12)
            data = await client.submit(np.arange, 500_000)
            assert 499_999 == data[-1]
        with pytest.raises(OSError):
            await connect(address, timeout=0.5, **cast("Any", others.get_connection_args("client")))
    assert {"bob"} == {each.person for each in made.unserved}


def security(directory: Path, shown: Shown) -> Security:
    return Security(
        require_encryption=True,
        tls_ca_file=str(directory / "ca.pem"),
        tls_client_cert=shown.certificate,
        tls_client_key=shown.key,
    )
