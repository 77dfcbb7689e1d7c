#!/usr/bin/env python3
# /// script
# requires-python = ">=3.10"
# dependencies = ["dask-jobqueue==0.9.0", "distributed", "asyncssh", "jinja2", "loguru", "httpx", "requests"]
# ///
"""Drive `RemoteHTCondor` of dask-remote-jobqueue 0.5.10, unmodified: its scheduler is a job that submits its own workers.

The package registry has only older versions, so HARNESS_REMOTE_JOBQUEUE names a checkout of the project.  Files are where its
description looks for them: /ca.crt and /tmp/token.  Notebook and job are on one machine here, so the three ports of the job are
reached without the tunnels, whose far ends are a facility's own servers.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from proof import prove, until


class Exchange(BaseHTTPRequestHandler):
    """What the job's loop asks of IAM: a token for another one, which is the same again."""

    exchanged = 0

    def do_POST(self):
        with open(os.environ["_condor_SCITOKENS_FILE"]) as file:
            said = json.dumps({"access_token": file.read().strip()}).encode()
        type(self).exchanged += 1
        self.send_response(200)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_):
        pass


class NoTunnels:
    """In place of the connections over ssh: the ports are there already."""

    def __init__(self, queue, **_):
        self.queue = queue

    def start(self):
        self.queue.put("OK")


@contextmanager
def planted(source, target):
    """A file of the facility's image, which is not there otherwise."""
    with open(source, "rb") as file:
        text = file.read()
    handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        os.write(handle, text)
        os.close(handle)
        yield
    finally:
        os.unlink(target)


@contextmanager
def issuer():
    """A server on the loopback interface; its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Exchange)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


def jobs():
    """What the queue says of those that are idle, running or held: by id, owner and requirements."""
    shown = subprocess.run(["condor_q", "-json"], capture_output=True, text=True, timeout=60)
    assert (0, "") == (shown.returncode, shown.stderr), shown
    found = json.loads(shown.stdout or "[]")
    return {f"{ad['ClusterId']}.{ad['ProcId']}": ad for ad in found if ad["JobStatus"] in (1, 2, 5)}


def ask(cluster, path):
    with urllib.request.urlopen(f"{cluster.controller_address}/{path}", timeout=60) as answer:
        return answer.read().decode()


async def running(cluster, timeout):
    """Look at the cluster as the panel of the labextension does, until it is there; what it said meanwhile."""
    end, said = time.monotonic() + timeout, []
    while cluster.job_status != "Running":
        cluster.scheduler_info  # noqa: B018 - it takes the cluster one step on
        state = cluster.job_status.rstrip(".")
        if state not in said:
            said.append(state)
        if time.monotonic() > end or "rror" in state or "hold" in state:
            raise TimeoutError(f"the cluster said {said}; {jobs()}")
        await asyncio.sleep(1)
    return said


def drive(options):
    """RemoteHTCondor from its creation to its end."""
    if place := os.environ.get("HARNESS_REMOTE_JOBQUEUE"):
        sys.path.insert(0, place)
    import dask_remote_jobqueue.utils as connections
    from dask_remote_jobqueue import RemoteHTCondor

    connections.ConnectionLoop = NoTunnels
    site = os.environ["HARNESS_SITE"]
    with (
        issuer() as iam,
        planted(os.environ["_condor_AUTH_SSL_CLIENT_CAFILE"], "/ca.crt"),
        planted(os.environ["_condor_SCITOKENS_FILE"], "/tmp/token"),
    ):
        os.environ |= {
            "JUPYTERHUB_USER": "ada",
            "JUPYTERHUB_API_TOKEN": "hub-secret",
            "REFRESH_TOKEN": "refresh-secret",
            "IAM_SERVER": iam,
            "IAM_CLIENT_ID": "client",
            "IAM_CLIENT_SECRET": "client-secret",
        }
        try:
            return asyncio.run(use(RemoteHTCondor, site, options.timeout))
        except BaseException:
            for number, ad in jobs().items():
                print(number, ad["JobStatus"], ad.get("HoldReason"), ad["Requirements"], ad.get("Arguments"))
                for stream in ([], ["-stderr"]):
                    subprocess.run(["condor_tail", *stream, number], timeout=60)
                subprocess.run(["condor_q", "-better-analyze", number], timeout=60)
            raise


async def use(kind, site, timeout):
    from distributed import Client

    began, proven = time.monotonic(), []
    # No image: this machine's own Python is that of the jobs.
    cluster = await kind(
        sitename=site, singularity_wn_image="undefined", user_cores=1, user_memory="1 GB", debug=False
    )
    said = await running(cluster, timeout)
    scheduler = f"{cluster.cluster_id}.0"
    assert [scheduler] == list(jobs()), jobs()
    assert cluster.scheduler_info["id"].startswith("Scheduler-"), cluster.scheduler_info
    assert Exchange.exchanged >= 1
    proven.append(f"scheduler is job {scheduler} after {time.monotonic() - began:.0f} s ({', '.join(said)})")

    cluster.scale(2)
    until("two worker jobs", lambda: len(jobs()) == 3, timeout)
    workers = [ad for number, ad in jobs().items() if number != scheduler]
    assert all(f'SiteName == "{site}"' in ad["Requirements"] for ad in workers), workers
    assert {"ada"} == {ad["Owner"] for ad in workers}, workers
    until("two workers", lambda: len(cluster.scheduler_info["workers"]) == 2, timeout)
    loop = asyncio.get_running_loop()

    def compute():
        with Client(f"tcp://{cluster.scheduler_address}", timeout=60) as client:
            client.wait_for_workers(2, timeout=timeout)
            total = sum(client.gather(client.map(lambda x: x * x, range(100))))
            places = client.run(where)
        return total, places

    total, places = await loop.run_in_executor(None, compute)
    assert 328350 == total
    assert {site} == set(places.values()), places
    proven.append(f"it submitted 2 workers at {site}, which computed a map of 100 tasks")

    # Its page of logs hangs whatever it runs on: it waits for the scheduler in an event loop that is not the scheduler's.
    assert "distributed.cli.dask_worker" in ask(cluster, "jobScript")
    cluster.scale(1)
    until("one worker job", lambda: len(jobs()) == 2, timeout)
    adapted = cluster.adapt(minimum=0, maximum=2)
    assert (0, 2) == (adapted.minimum, adapted.maximum)
    until("adaptation to nothing", lambda: [scheduler] == list(jobs()), timeout)
    assert 328350 == (await loop.run_in_executor(None, computed, cluster.scheduler_address, timeout))
    proven.append("scale and adapt of its controller removed and started workers")

    cluster.close()
    until("the end of all jobs", lambda: not jobs(), timeout)
    ended = subprocess.run(
        ["condor_history", scheduler, "-af", "JobStatus", "Owner"], capture_output=True, text=True, timeout=60
    )
    assert "3 ada" == ended.stdout.strip(), ended
    proven.append("it removed its workers and itself")
    return "RemoteHTCondor 0.5.10: " + "; ".join(proven)


def computed(address, timeout):
    from distributed import Client

    with Client(f"tcp://{address}", timeout=60) as client:
        return sum(client.gather(client.map(lambda x: x * x, range(100), pure=False), errors="raise"))


def where():
    """Run on a worker: the site of its machine."""
    with open(os.environ["_CONDOR_MACHINE_AD"]) as file:
        return re.search(r'(?m)^SiteName = "(.*)"', file.read())[1]


if __name__ == "__main__":
    prove(drive, ("condor_submit", "condor_rm", "condor_q", "curl", "jq"))
