#!/usr/bin/env python3
"""
JupyterHub with `KettleSpawner` on the pool of KETTLE_HOME: servers start, outlive a hub that is killed, are stopped, and say why they wait.

Further settings of the hub come from the file that HUB_SETTINGS names.  The machine on which servers have to run is HUB_MACHINE, if set.
"""

import asyncio
import getpass
import os
import subprocess
import time
from pathlib import Path

from hub import Hub, kernel_prints, new_kernel, single_user_server
from proof import prove, until

CONFIG = """
c.JupyterHub.spawner_class = "kettle"
c.JupyterHub.cleanup_servers = False
c.JupyterHub.tornado_settings = {{"slow_spawn_timeout": 1}}
c.Spawner.cmd = [{single!r}]
c.Spawner.args = {args!r}
c.Spawner.env_keep = ["PATH", "LANG"]
c.Spawner.poll_interval = 1
c.KettleSpawner.profiles = [
    {{"name": "notebook", "title": "Notebook", "memory": 256, "attributes": {{"HubTest": True}}}},
    {{"name": "huge", "title": "Huge", "cpus": 4096, "attributes": {{"HubTest": True}}}},
    {{"name": "broken", "title": "Broken", "memory": 16, "attributes": {{"HubTest": True}}}},
]

def break_server(spawner):
    if spawner.user_options.get("profile") == "broken":
        spawner.cmd = ["/bin/sh", "-c", "echo no such kernel >&2; exit 3"]

c.Spawner.pre_spawn_hook = break_server
"""


def jobs(*shown):
    """Ids of the jobs in the queue that are servers, with attributes of each."""
    words = ["condor_q", "-constraint", "HubTest", "-af:j", *(shown or ["JobStatus"])]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout.splitlines()


def drive(options):
    """JupyterHub, KettleSpawner, and the servers of a user as jobs."""
    import jupyterhub

    user, proven = getpass.getuser(), []
    args = ["--allow-root"] if os.geteuid() == 0 else []
    settings = CONFIG.format(single=single_user_server(), args=args)
    if file := os.environ.get("HUB_SETTINGS"):
        settings += Path(file).read_text()
    with Hub(settings, users=[user], timeout=options.timeout, port=int(os.environ.get("HUB_PORT", "0"))) as hub:
        begun = time.monotonic()
        server = hub.started(user)
        took = time.monotonic() - begun
        job, where = jobs("RemoteHost")[0].split()
        machine = os.environ.get("HUB_MACHINE", "")
        assert machine in where, where
        proven.append(f"a server was ready after {took:.1f} s as job {job} on {where}")
        url, token = hub.address + server["url"], hub.token_of(user)

        def printed(code):
            return asyncio.run(kernel_prints(url, token, code, options.timeout, kernel)).split()

        kernel = new_kernel(url, token, options.timeout)
        printed("import os; kept = os.urandom(8).hex()")
        kept, api_token = printed("print(kept, os.environ['JUPYTERHUB_API_TOKEN'])")
        ad = subprocess.run(["condor_q", job, "-l"], capture_output=True, text=True, timeout=60, check=True).stdout
        assert "JUPYTERHUB_USER" in ad
        assert api_token not in ad
        proven.append("its token is not in its ad")

        hub.kill()
        hub.start()
        assert [kept] == printed("print(kept)")
        assert [job] == [line.split()[0] for line in jobs()]
        proven.append("after the hub was killed and started again its kernel is the same")

        assert hub.call("DELETE", f"users/{user}/server").status_code in {202, 204}
        until("the job leaving the queue", lambda: not jobs(), options.timeout)
        until("the hub noticing", lambda: not hub.servers(user), options.timeout)
        proven.append("stopping the server removed the job")

        hub.started(user)
        [line] = jobs()
        subprocess.run(["condor_rm", line.split()[0]], check=True, capture_output=True, timeout=60)
        until("the hub noticing the loss", lambda: not hub.servers(user), options.timeout)
        proven.append("a job that is removed behind the hub's back is noticed")

        hub.ask(user, {"profile": "huge"})
        waits = next(line["message"] for line in hub.progress(user) if "asks for 4096 cores" in line["message"])
        assert hub.call("DELETE", f"users/{user}/server").status_code in {202, 204}
        until("the job leaving the queue", lambda: not jobs(), options.timeout)
        proven.append(f"a server that cannot run says why ({waits!r}), and given up it leaves no job")

        failed = hub.refused(user, {"profile": "broken"})
        assert "exited with code 3; its last words: no such kernel" in failed, failed
        until("the job leaving the queue", lambda: not jobs(), options.timeout)
        proven.append(f"a server that fails says how ({failed!r})")
    return f"jupyterhub {jupyterhub.__version__}: " + "; ".join(proven)


if __name__ == "__main__":
    prove(drive, needed=("condor_q", "condor_rm"))
