#!/usr/bin/env python3
# /// script
# requires-python = ">=3.11"
# dependencies = ["jupyterhub>=5", "batchspawner>=1.3", "notebook>=7", "requests", "tornado"]
# ///
"""
Drive an unmodified batchspawner `CondorSpawner` inside a real JupyterHub.

The hub is asked by its REST API for a server of the calling user, code runs in a kernel of that server through the hub's proxy, the
server is stopped, and its job is gone; a server whose job is removed behind the hub's back is noticed.
configurable-http-proxy is taken from PATH, or else installed by npm into the work directory.
The default template of CondorSpawner writes ~/.jupyterhub.condor.out and .err.
"""

import asyncio
import getpass
import os
import subprocess
from importlib.metadata import version

from hub import Hub, kernel_prints, single_user_server
from proof import prove, until

CONFIG = """
import batchspawner  # registers the API handler that tells the hub the port
c.JupyterHub.spawner_class = "batchspawner.CondorSpawner"
c.Spawner.cmd = [{single!r}]
c.Spawner.args = {args!r}
c.Spawner.env_keep = ["PATH", "LANG", "PYTHONPATH", "KETTLE_HOME", "CONDOR_CONFIG"]
c.BatchSpawnerBase.exec_prefix = ""  # hub and user are one account here
c.BatchSpawnerBase.req_memory = "512"
c.BatchSpawnerBase.req_nprocs = "1"
c.BatchSpawnerBase.req_options = '+HubTest = "batchspawner"\\nrequest_disk = 64MB'
c.BatchSpawnerBase.batchspawner_singleuser_cmd = {wrapper!r}
"""
CODE = "import os; print(6 * 7, bool(os.environ.get('_CONDOR_SCRATCH_DIR')), os.environ.get('JUPYTERHUB_USER'))"


def running():
    """Id and place of the job that is running."""
    words = ["condor_q", "-constraint", 'HubTest == "batchspawner" && JobStatus == 2', "-af:j", "RemoteHost"]
    shown = subprocess.run(words, capture_output=True, text=True, timeout=60)
    job, _, where = shown.stdout.partition("\n")[0].partition(" ")
    assert "@" in where, shown
    return job, where


def is_over(job):
    """Whether it is removed or completed."""
    words = ["condor_q", job, "-af:j", "JobStatus"]
    shown = subprocess.run(words, capture_output=True, text=True, timeout=60)
    states = [line.split()[1] for line in shown.stdout.splitlines() if line.startswith(job + " ")]
    return not states or states[0] in {"3", "4"}


def drive(options):
    """JupyterHub, CondorSpawner of batchspawner, and the servers of a user as jobs."""
    import jupyterhub

    user = getpass.getuser()
    single, wrapper = single_user_server(), single_user_server("batchspawner-singleuser")
    args = ["--allow-root"] if os.geteuid() == 0 else []
    config = CONFIG.format(single=single, args=args, wrapper=wrapper)
    proven = []
    with Hub(config, users=[user], timeout=options.timeout) as hub:
        server = hub.started(user)
        job, where = running()
        proven.append(f"CondorSpawner started the server as job {job} on {where.partition('@')[2]}")
        token = hub.token_of(user)
        printed = asyncio.run(kernel_prints(hub.address + server["url"], token, CODE, options.timeout))
        assert ["42", "True", user] == printed.split(), printed
        proven.append("a kernel inside the job ran code through hub, proxy and WebSocket")
        assert hub.call("DELETE", f"users/{user}/server").status_code in {202, 204}
        until("the job leaving the queue", lambda: is_over(job), options.timeout)
        until("the hub noticing", lambda: not hub.servers(user), options.timeout)
        proven.append("stopping the server removed the job")
        hub.started(user)
        second, _ = running()
        subprocess.run(["condor_rm", second], check=True, capture_output=True, timeout=60)
        until("the hub noticing the loss", lambda: not hub.servers(user), options.timeout)
        proven.append("a job that is removed behind the hub's back is noticed through condor_q")
    return f"jupyterhub {jupyterhub.__version__}, batchspawner {version('batchspawner')}: " + "; ".join(proven)


if __name__ == "__main__":
    prove(drive, needed=("condor_submit", "condor_rm", "condor_q"))
