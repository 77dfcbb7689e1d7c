"""
What services of jobs cost on their way through tunnel and gateway of a whole pool: JSON on standard output.

    python -m tests.performance.facility

`direct`: the same client at the port of the job's own server, on the same machine.  `stream`: one TCP stream by `GET
/v2/jobs/ID/services/raw/connect`.  `added`: one byte forth and back, beside the same directly.  `connections`: memory of the gateway's
process and of the job's, with 1,000 that are idle and 100 that send all the time.  `gateway_back_s`: from the death of the gateway to the
next connection to the service.  `dask`: clusters, see `tests.performance.dask_clusters`; with --rounds-of-clusters 0 there are none.
`notebook`: from the wish for a server of JupyterHub to the first cell that is run, by `kettle demo facility`; where KETTLE_TEST_CLIENTS has a
hub installed.  `bars`: what is expected, beside it.
"""

import argparse
import asyncio
import json
import os
import shutil
import socket
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Final

import msgspec
from tests.performance.facility_bars import beside
from tests.scenario.client_environments import ORDER

from kettle.client import prepare, select
from kettle.execution.system.linux import children_of, parent_of
from kettle.testing.commands.running import execute
from kettle.testing.measurements import processor_seconds, proportional_kib, say, summary
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.held_port import held_port
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool
from kettle_wire.jobs import JobId

PYTHON: Final = shutil.which("python3", path="/usr/bin:/bin")
MIB: Final = 1 << 20
STANDS_S: Final = 6.0
"""So long a gateway has been there that is killed: a tunnel that ends sooner than after five seconds comes back later each time."""
_CLIENTS: Final = 8
"""Threads that read busy streams."""
SERVER: Final = """\
import asyncio, os, sys

async def serve(reader, writer):
    sock = writer.get_extra_info("socket")
    try:
        while word := await reader.read(1):
            if word == b"p":
                writer.write(str(os.getpid()).encode() + b"\\n")
            elif word == b"g":
                left = int(await reader.readline())
                piece = bytes(1 << 20)
                while left > 0:
                    writer.write(piece[:left])
                    await writer.drain()
                    left -= len(piece)
            else:
                writer.write(word)
            await writer.drain()
    except ConnectionError:
        pass
    writer.close()

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]), backlog=2000)
    await server.serve_forever()

asyncio.run(main())
"""


class Service:
    """The service of one job: connections to it, through the gateway or directly."""

    def __init__(self, pool: ThrowawayPool, job: JobId, port: int) -> None:
        self._home = pool.home / "gateway"
        self._job = job
        self._port = port

    def direct(self) -> socket.socket:
        """A connection to the server itself."""
        return _plain(self._port)

    def tunnelled(self) -> socket.socket:
        """
        A connection through gateway and tunnel; raises OSError: it is refused.

        A gateway that has started again has another token.
        """
        port, token = ((self._home / name).read_text().strip() for name in ("port", "token"))
        sock = _plain(int(port))
        sock.sendall(
            f"GET /v2/jobs/{self._job}/services/raw/connect HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\n"
            f"Upgrade: kettle-stream\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
        )
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            if not (byte := sock.recv(1)):
                break
            head += byte
        if b" 101 " not in head.partition(b"\r\n")[0]:
            raise OSError(head.decode(errors="replace"))
        return sock


def _plain(port: int) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def throughput(sock: socket.socket, size: int) -> float:
    """MB/s of so many bytes."""
    buffer, left = bytearray(MIB), size
    with sock:
        began = time.perf_counter()
        sock.sendall(b"g%d\n" % size)
        while left > 0:
            count = sock.recv_into(buffer)
            assert count, "the stream has ended before all was there"
            left -= count
        return size / 1e6 / (time.perf_counter() - began)


def answer_times(sock: socket.socket, count: int) -> tuple[float, float]:
    """Milliseconds for one byte forth and back: the median, and what 99 of 100 do not exceed."""
    times: list[float] = []
    with sock:
        for _ in range(count):
            began = time.perf_counter()
            sock.sendall(b".")
            sock.recv(1)
            times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times), sorted(times)[int(0.99 * len(times))]


def busy(sockets: list[socket.socket], until: float) -> int:
    """Bytes that come on these while they are asked again and again."""
    came = [0] * _CLIENTS

    def read(which: int) -> None:
        mine, buffer = sockets[which::_CLIENTS], bytearray(MIB)
        while time.perf_counter() < until:
            for sock in mine:
                sock.sendall(b"g%d\n" % (MIB // 4))
            for sock in mine:
                left = MIB // 4
                while left > 0:
                    left -= sock.recv_into(buffer, left)
                came[which] += MIB // 4

    threads = [threading.Thread(target=read, args=(which,)) for which in range(_CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(came)


def connections(
    service: Service, processes: dict[str, int], idle: int, busy_: int, seconds: float
) -> dict[str, Any]:
    """Memory with idle connections, then with busy ones beside them; and how much these carry together."""

    def memory() -> dict[str, float]:
        return {name: round(proportional_kib(pid) / 1024, 1) for name, pid in processes.items()}

    report: dict[str, Any] = {"idle": idle, "busy": busy_, "mib_without": memory()}
    began = time.perf_counter()
    open_ = [service.tunnelled() for _ in range(idle)]
    report["opened_per_s"] = round(idle / (time.perf_counter() - began))
    for sock in open_:
        sock.sendall(b".")
        sock.recv(1)
    report["mib_idle"] = memory()
    report["mib_added_idle"] = round(report["mib_idle"]["gateway"] - report["mib_without"]["gateway"], 1)
    working = [service.tunnelled() for _ in range(busy_)]
    used = {name: processor_seconds(pid) for name, pid in processes.items()}
    began = time.perf_counter()
    came = busy(working, began + seconds)
    taken = time.perf_counter() - began
    report["mib_busy"] = memory()
    report["busy_mb_per_s"] = round(came / 1e6 / taken)
    report["processors"] = {
        name: round((processor_seconds(pid) - used[name]) / taken, 2) for name, pid in processes.items()
    }
    for sock in (*open_, *working):
        sock.close()
    return report


async def measured(pool: ThrowawayPool, directory: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """All of it, with one job."""
    port = held_port()
    (directory / "server.py").write_text(SERVER)
    text = f"""
        executable = {PYTHON}
        arguments = server.py {port}
        transfer_executable = false
        transfer_input_files = {directory / "server.py"}
        services = raw:{port}/tcp
        queue
        """
    job = JobId((await pool.client.submit(prepare(text))).cluster, 0)
    service = Service(pool, job, port)
    server = await asyncio.to_thread(reached, service)
    starter = parent_of(server) or 0
    helper = next(pid for pid in children_of(starter) if pid != server)
    say("throughput and time of answers")
    found: dict[str, list[float]] = {}
    for _ in range(arguments.rounds):
        for name, connect in (("direct", service.direct), ("stream", service.tunnelled)):
            rate = await asyncio.to_thread(throughput, connect(), arguments.mib * MIB)
            p50, p99 = await asyncio.to_thread(answer_times, connect(), arguments.answers)
            for what, value in (("mb_per_s", rate), ("p50_ms", p50), ("p99_ms", p99)):
                found.setdefault(f"{name}_{what}", []).append(value)
    report: dict[str, Any] = {name: summary(values) for name, values in found.items()}
    report["added_p50_ms"] = summary(
        through - without
        for through, without in zip(found["stream_p50_ms"], found["direct_p50_ms"], strict=True)
    )
    say("many connections")
    processes = {"gateway": pool.pid("gateway"), "job_side": helper}
    report["connections"] = await asyncio.to_thread(
        connections, service, processes, arguments.idle, arguments.busy, arguments.seconds
    )
    say("a gateway that is killed")
    back: list[float] = []
    for _ in range(arguments.rounds):
        await asyncio.sleep(STANDS_S)
        pool.kill("gateway")
        began = time.perf_counter()
        await asyncio.to_thread(reached, service)
        back.append(time.perf_counter() - began)
    report["gateway_back_s"] = summary(back)
    await pool.client.remove(select(job))
    return report


def reached(service: Service) -> int:
    """The process of the server, as soon as it answers through the gateway."""
    until = time.perf_counter() + PATIENCE_S
    while True:
        try:
            with service.tunnelled() as sock:
                sock.sendall(b"p")
                return int(sock.makefile().readline())
        except (OSError, ValueError):
            if time.perf_counter() > until:
                raise
            time.sleep(0.05)


async def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """In a pool of its own."""
    settings = {
        "gateway": {
            "rest": True,
            "service_connections_of_one": 4000,
            "requests_per_second": 1e5,
            "request_burst": 1e5,
            "all_requests_per_second": 1e5,
            "all_request_burst": 1e5,
        }
    }
    with tempfile.TemporaryDirectory() as name:
        async with throwaway_pool(Path(name), settings=settings) as pool:
            return await measured(pool, Path(name), arguments)


async def notebooks(rounds: int) -> dict[str, Any]:
    """
    How long somebody waits who wants a notebook, in the pool of a demonstration; nothing where no hub is to be installed.
    """
    if ORDER not in os.environ:
        return {"missing": f"{ORDER} is not set: no JupyterHub is installed"}
    from tests.scenario.hub_programs import installed

    from kettle_services.cli.facility.figures import FacilityFigures

    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as name:
        programs = await installed(Path(name))
        environ = {**os.environ, "PATH": programs.path}
        for number in range(rounds):
            say(f"a notebook, round {number + 1}")
            words = [programs.python, "-m", "kettle_services.cli", "demo", "facility", "--jobs=4", "--json"]
            said = await execute(words, Path(name), environ, within_s=600.0)
            assert said.status == 0, said
            figures = msgspec.json.decode(said.out, type=FacilityFigures)
            for what, value in (("server_s", figures.server), ("kernel_s", figures.kernel)):
                found.setdefault(what, []).append(value)
    return {what: summary(values) for what, values in found.items()}


def main(words: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--mib", type=int, default=1024, help="of one stream")
    parser.add_argument("--answers", type=int, default=2000)
    parser.add_argument("--idle", type=int, default=1000)
    parser.add_argument("--busy", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds-of-clusters", type=int, default=3)
    parser.add_argument("--workers", type=int, default=50, help="to which a Dask cluster grows")
    parser.add_argument(
        "--gigabytes", type=float, default=10.0, help="of columns of which a histogram is made"
    )
    arguments = parser.parse_args(words)
    report = asyncio.run(run(arguments))
    if arguments.rounds_of_clusters:
        from tests.performance import dask_clusters  # Dask, which the rest has no use for

        of_clusters = argparse.Namespace(
            rounds=arguments.rounds_of_clusters, workers=arguments.workers, gigabytes=arguments.gigabytes
        )
        report["dask"] = asyncio.run(dask_clusters.run(of_clusters))
        report["notebook"] = asyncio.run(notebooks(arguments.rounds_of_clusters))
    report["bars"] = beside(report)
    sys.stdout.write(f"{json.dumps(report, indent=2)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
