#!/usr/bin/env python3
# /// script
# requires-python = ">=3.10"
# dependencies = ["dask_labextension==7.0.0", "dask-jobqueue==0.9.0", "distributed", "bokeh", "jupyterlab"]
# ///
"""Drive dask-labextension, unmodified, by the requests of its panel: NEW, SCALE, dashboard, adapt, SHUTDOWN.

HARNESS_FACTORY says with clusters of which module: dask_jobqueue (default), or kettle.dask, whose dashboards are behind the gateway and not
for the panel's own server to show.
"""

import http.client
import json
import os
import secrets
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager

from proof import prove, until

TOKEN = secrets.token_hex(16)
CONFIG = """\
labextension:
  factory:
    module: dask_jobqueue
    class: HTCondorCluster
    args: []
    kwargs:
      cores: 1
      memory: 400MB
      disk: 64MB
      python: {python}
      log-directory: {work}/logs
      local-directory: {work}/spill
      death-timeout: 120
      submit-command-extra: {extra}
      scheduler-options:
        host: 127.0.0.1
        dashboard_address: "127.0.0.1:0"
"""
KETTLE = """\
labextension:
  factory:
    module: kettle.dask
    class: KettleCluster
    args: []
    kwargs:
      n: 0
      wait: 1
"""
FACTORY = os.environ.get("HARNESS_FACTORY", "dask_jobqueue")
ADDRESS, SCHEDULERS = ("kettle://", 1) if FACTORY == "kettle.dask" else ("tcp://127.0.0.1:", 0)
"""With what addresses of schedulers begin, and how many of a cluster's jobs are schedulers."""


class Lab:
    """What the panel of the extension asks its server."""

    def __init__(self, url):
        self.url = url

    def ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, method=method)
        request.add_header("Authorization", f"token {TOKEN}")
        with urllib.request.urlopen(request, timeout=120) as answer:
            text = answer.read()
        return json.loads(text) if text[:1] in (b"{", b"[") else text


@contextmanager
def server(work):
    """A jupyter server with the extension, as `jupyter lab` starts it, on the loopback interface."""
    settings = os.path.join(work, "dask")
    os.makedirs(settings, exist_ok=True)
    with open(os.path.join(settings, "labextension.yaml"), "w") as file:
        text = KETTLE if FACTORY == "kettle.dask" else CONFIG
        file.write(text.format(python=sys.executable, work=work, extra=json.dumps(extra())))
    where = os.path.join(work, "runtime")
    environ = os.environ | {"DASK_CONFIG": settings, "JUPYTER_RUNTIME_DIR": where}
    words = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", "--port=0"]
    words += [f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={work}"]
    with open(os.path.join(work, "lab.log"), "wb") as log:
        process = subprocess.Popen(words, cwd=work, env=environ, stdout=log, stderr=log)
    try:
        yield Lab(until("the start of the server", lambda: address(where, process), 120))
    finally:
        process.terminate()
        process.wait(60)


def extra():
    """What else condor_submit is told here: nothing, unless jobs share no files with this machine."""
    return os.environ.get("HARNESS_SUBMIT_EXTRA", "").split()


def address(where, process):
    """What the server writes down of itself when it listens."""
    if process.poll() is not None:
        raise RuntimeError(f"jupyter has ended with {process.returncode}: see lab.log")
    for name in os.listdir(where) if os.path.isdir(where) else []:
        if name.startswith("jpserver-") and name.endswith(".json"):
            with open(os.path.join(where, name)) as file:
                return json.load(file)["url"]
    return None


def queued():
    """The ids of the jobs that are there."""
    shown = subprocess.run(["condor_q", "-af:j", "JobStatus"], capture_output=True, text=True, timeout=60)
    assert (0, "") == (shown.returncode, shown.stderr), shown
    rows = [line.split() for line in shown.stdout.splitlines()]
    return [number for number, status in rows if status in ("1", "2", "5")]


def computed(address):
    from distributed import Client

    with Client(address, timeout=60) as client:
        return sum(client.gather(client.map(lambda x: x * x, range(100))))


def dashboards(lab, new):
    """The plots of a cluster, as the panel's server shows them."""
    page = lab.ask("GET", f"dask/dashboard/{new['id']}/status")
    plots = lab.ask("GET", f"dask/dashboard/{new['id']}/individual-plots.json")
    assert b"Bokeh" in page or b"bokeh" in page, page[:500]
    assert "Individual Task Stream" in plots, plots
    check = lab.ask("GET", "dask/dashboard-check/" + urllib.request.quote(new["dashboard_link"], safe=""))
    assert check["isActive"], check
    return f"the dashboard and its {len(plots)} plots come through the server"


def drive(options):
    """NEW, SCALE, dashboard, adapt and SHUTDOWN of dask-labextension."""
    from importlib.metadata import version

    work, proven = os.getcwd(), []
    with server(work) as lab:
        assert [] == lab.ask("GET", "dask/clusters/")
        new = lab.ask("PUT", "dask/clusters/")
        path = f"dask/clusters/{new['id']}"

        def with_scheduler():
            shown = lab.ask("GET", path)
            return shown if "://" in shown["scheduler_address"] else None

        new = until("its scheduler", with_scheduler, options.timeout)
        assert (0, True) == (new["workers"], new["scheduler_address"].startswith(ADDRESS)), new
        proven.append(f"NEW made {new['name']}")

        def workers():
            return lab.ask("GET", path)["workers"]

        lab.ask("PATCH", path, {"workers": 2})
        until("two workers", lambda: workers() == 2, options.timeout)
        ids = queued()
        assert 2 + SCHEDULERS == len(ids), ids
        assert 328350 == computed(new["scheduler_address"])
        proven.append(f"SCALE to 2 started jobs {' and '.join(sorted(ids))}, which computed")

        if FACTORY == "dask_jobqueue":
            proven.append(dashboards(lab, new))

        lab.ask("PATCH", path, {"workers": 1})
        until("one worker", lambda: workers() == 1 and len(queued()) == 1 + SCHEDULERS, options.timeout)
        proven.append("SCALE to 1 removed one job")

        adapted = lab.ask("PATCH", path, {"adapt": {"minimum": 0, "maximum": 2}})
        assert {"minimum": 0, "maximum": 2} == adapted["adapt"], adapted
        until("no worker", lambda: len(queued()) == SCHEDULERS, options.timeout)
        assert 328350 == computed(new["scheduler_address"])
        proven.append("adapt removed what idled and started workers for work")

        assert b"" == lab.ask("DELETE", path)
        assert [] == lab.ask("GET", "dask/clusters/")
        until("the end of all jobs", lambda: not queued(), options.timeout)
        proven.append("SHUTDOWN left no job")
        try:
            lab.ask("GET", path)
            raise AssertionError("the cluster is still known")
        except urllib.error.HTTPError as error:
            assert http.client.NOT_FOUND == error.code
    return f"dask-labextension {version('dask_labextension')}: " + "; ".join(proven)


if __name__ == "__main__":
    prove(drive, ("condor_submit", "condor_rm", "condor_q"))
