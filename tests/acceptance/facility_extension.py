#!/usr/bin/env python3
# /// script
# requires-python = ">=3.10"
# dependencies = ["dask_labextension==7.0.0", "dask-jobqueue==0.9.0", "distributed", "bokeh", "jupyterlab", "asyncssh", "loguru", "httpx", "requests"]
# ///
"""Drive the facility's own labextension and dfleet, unmodified: clusters of `RemoteHTCondor` by requests with a hub's token.

HARNESS_LABEXTENSION, HARNESS_DFLEET and HARNESS_REMOTE_JOBQUEUE name checkouts of the projects: the fork's branch af_plugin, dfleet,
and dask-remote-jobqueue 0.5.10.  For the hub stands a proxy that knows one token.  dfleet creates no cluster, because it sends no image and
the fork insists on one: that request is the panel's.
"""

import http.client
import json
import os
import secrets
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from proof import prove, until
from remote_jobqueue import issuer, jobs, planted

USER = "ada"
TOKEN = secrets.token_hex(16)
CONFIG = """\
import dask_remote_jobqueue.utils as connections


class NoTunnels:
    def __init__(self, queue, **_):
        self.queue = queue

    def start(self):
        self.queue.put("OK")


connections.ConnectionLoop = NoTunnels
"""
FACTORIES = """\
labextension:
  factories:
    - name: "{site}"
      module: dask_remote_jobqueue
      class: RemoteHTCondor
      args: []
      kwargs:
        sitename: "{site}"
        user_memory: "1 GB"
        debug: false
"""


class Hub(BaseHTTPRequestHandler):
    """What of a hub these programs use: whose a token is, and the way to that person's server."""

    server_of_user = 0

    def answer(self):
        if self.path == f"/hub/api/authorizations/token/{TOKEN}":
            return self.said(200, json.dumps({"name": USER}).encode())
        if self.headers.get("Authorization") != f"token {TOKEN}":
            return self.said(403, b"{}")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        there = http.client.HTTPConnection("127.0.0.1", self.server_of_user, timeout=120)
        there.request(self.command, self.path, body, {"Authorization": f"token {TOKEN}"})
        found = there.getresponse()
        return self.said(found.status, found.read())

    do_GET = do_PUT = do_PATCH = do_DELETE = answer

    def said(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextmanager
def lab(work, site):
    """A person's server with the fork, as the hub starts it; its port."""
    for name, text in (("jupyter_server_config.py", CONFIG), ("labextension.yaml", FACTORIES.format(site=site))):
        with open(os.path.join(work, name), "w") as file:
            file.write(text)
    path = os.pathsep.join([os.environ["HARNESS_LABEXTENSION"], os.environ["HARNESS_REMOTE_JOBQUEUE"]])
    where = os.path.join(work, "runtime")
    environ = os.environ | {"PYTHONPATH": path, "DASK_CONFIG": work, "JUPYTER_RUNTIME_DIR": where}
    words = [sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root", "--ip=127.0.0.1", "--port=0"]
    words += [f"--IdentityProvider.token={TOKEN}", f"--ServerApp.base_url=/user/{USER}/"]
    words += [f"--config={work}/jupyter_server_config.py", f"--ServerApp.root_dir={work}"]
    words += ["--ServerApp.jpserver_extensions=dask_labextension=True"]
    with open(os.path.join(work, "lab.log"), "wb") as log:
        process = subprocess.Popen(words, cwd=work, env=environ, stdout=log, stderr=log)
    try:
        yield until("the start of the server", lambda: port_of(where, process), 120)
    except BaseException:
        with open(os.path.join(work, "lab.log")) as log:
            print(log.read()[-6000:])
        raise
    finally:
        process.terminate()
        process.wait(60)


def port_of(where, process):
    assert process.poll() is None, "jupyter has ended: see lab.log"
    for name in os.listdir(where) if os.path.isdir(where) else []:
        if name.startswith("jpserver-") and name.endswith(".json"):
            with open(os.path.join(where, name)) as file:
                return json.load(file)["port"]
    return 0


def fleet(hub, call):
    """What a function of dfleet returns in a process of its own."""
    script = f"import json, dfleet.cluster as c; print('\\n' + json.dumps(c.{call}))".replace(
        "ACCESS", f"token={TOKEN!r}, jhub_url={hub!r}"
    )
    environ = os.environ | {"PYTHONPATH": os.environ["HARNESS_DFLEET"]}
    said = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environ, timeout=120
    )
    assert 0 == said.returncode, said
    return json.loads(said.stdout.splitlines()[-1])


def drive(options):
    """A cluster of the facility's own programs, from its creation to its end."""
    site, work, proven = os.environ["HARNESS_SITE"], os.getcwd(), []
    with (
        issuer() as iam,
        planted(os.environ["_condor_AUTH_SSL_CLIENT_CAFILE"], "/ca.crt"),
        planted(os.environ["_condor_SCITOKENS_FILE"], "/tmp/token"),
    ):
        os.environ |= {"JUPYTERHUB_USER": USER, "JUPYTERHUB_API_TOKEN": TOKEN, "REFRESH_TOKEN": "refresh"}
        os.environ |= {"IAM_SERVER": iam, "IAM_CLIENT_ID": "client", "IAM_CLIENT_SECRET": "secret"}
        with lab(work, site) as port:
            Hub.server_of_user = port
            hub_server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
            threading.Thread(target=hub_server.serve_forever, daemon=True).start()
            hub = f"http://127.0.0.1:{hub_server.server_port}"

            def asked(method, path, body=None):
                there = http.client.HTTPConnection("127.0.0.1", hub_server.server_port, timeout=120)
                text = None if body is None else json.dumps(body)
                there.request(method, f"/user/{USER}/dask/{path}", text, {"Authorization": f"token {TOKEN}"})
                found = there.getresponse()
                answer = found.read()
                assert 200 == found.status, (found.status, answer)
                return json.loads(answer)

            assert [site] == [each["name"] for each in asked("GET", "clusters/factories")["factories"]]
            new = asked("PUT", "clusters/", {"factoryName": site, "singularityImage": "/images/analysis.sif"})
            assert new["factory"] == site, new
            until("the cluster", lambda: state(hub, new) == "Running", options.timeout)
            (scheduler,) = jobs()
            proven.append(f"the panel's request made {new['name']}, whose scheduler is job {scheduler}")

            fleet(hub, f"edit(cluster_id={new['id']!r}, workers=2, ACCESS)")
            until("two workers", lambda: fleet(hub, f"status(cluster_id={new['id']!r}, ACCESS)")["workers"] == 2 and len(jobs()) == 3, options.timeout)
            (listed,) = fleet(hub, "list(ACCESS)")
            assert (new["id"], 2) == (listed["id"], listed["workers"]), listed
            fleet(hub, f"edit(cluster_id={new['id']!r}, adapt={{'minimum': 0, 'maximum': 2}}, ACCESS)")
            until("adaptation to nothing", lambda: len(jobs()) == 1, options.timeout)
            proven.append("dfleet lists it, scales it to 2 and has it adapt")

            fleet(hub, f"delete(cluster_id={new['id']!r}, ACCESS)")
            assert [] == fleet(hub, "list(ACCESS)")
            until("the end of all jobs", lambda: not jobs(), options.timeout)
            proven.append("dfleet deletes it, and no job is left")
            hub_server.shutdown()
    return "the facility's labextension and dfleet: " + "; ".join(proven)


def state(hub, cluster):
    """What the cluster says of itself; looking takes it one step on."""
    said = fleet(hub, f"status(cluster_id={cluster['id']!r}, ACCESS)")["job_status"]
    assert "rror" not in said, said
    return said


if __name__ == "__main__":
    prove(drive, ("condor_submit", "condor_rm", "condor_q", "curl", "jq"))
