"""
A real JupyterHub with configurable-http-proxy, started in the work directory and driven by its REST API.
"""

import asyncio
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import uuid
from pathlib import Path

from proof import until

PROXY = "configurable-http-proxy"
CONFIG = """
c = get_config()  # noqa
c.JupyterHub.bind_url = "http://127.0.0.1:{proxy}"
c.JupyterHub.hub_ip = "127.0.0.1"
c.JupyterHub.hub_port = {hub}
c.JupyterHub.hub_connect_ip = "127.0.0.1"
c.ConfigurableHTTPProxy.command = [{command!r}]
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{api}"
c.JupyterHub.cookie_secret_file = "cookie_secret"
c.JupyterHub.db_url = "sqlite:///hub.sqlite"
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allowed_users = {users!r}
c.JupyterHub.services = [{{"name": "driver", "api_token": {token!r}}}]
c.JupyterHub.load_roles = [
    {{"name": "driver", "services": ["driver"], "scopes": ["admin:users", "admin:servers", "tokens", "access:servers"]}}
]
c.Spawner.start_timeout = {timeout}
c.Spawner.http_timeout = {timeout}
"""


class Hub:
    """One hub; `settings`: what is added to its configuration file; `port`: where its servers reach it; 0: any."""

    def __init__(self, settings, users, timeout, port=0):
        self.timeout = timeout
        proxy, hub, api = _free_ports(3)
        self.address = f"http://127.0.0.1:{proxy}"
        self._token = secrets.token_hex(16)
        self._process = None
        config = CONFIG.format(
            proxy=proxy,
            hub=port or hub,
            api=api,
            command=_proxy_command(),
            users=set(users),
            token=self._token,
            timeout=int(timeout),
        )
        Path("jupyterhub_config.py").write_text(config + settings)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, error, _trace):
        self.stop()
        if kind is not None:
            sys.stderr.write("".join(Path("hub.log").read_text().splitlines(keepends=True)[-80:]))

    def start(self):
        """Until it answers."""
        with open("hub.log", "a") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "jupyterhub", "--debug", "-f", "jupyterhub_config.py"],
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        until("JupyterHub answering", self._answers, self.timeout)

    def stop(self, signal_=signal.SIGTERM):
        """With its proxy."""
        try:
            os.killpg(self._process.pid, signal_)
            self._process.wait(self.timeout)
        except (OSError, subprocess.TimeoutExpired):
            os.killpg(self._process.pid, signal.SIGKILL)

    def kill(self):
        """The hub alone: its proxy goes on, and is replaced when the hub starts again."""
        self._process.kill()
        self._process.wait(self.timeout)

    def _answers(self):
        import requests

        if self._process.poll() is not None:
            raise RuntimeError(f"jupyterhub ended with {self._process.returncode}")
        try:
            return self.call("GET", "").status_code == 200
        except requests.ConnectionError:
            return False

    def call(self, method, path, **said):
        """Ask its REST API with the rights of the driver."""
        import requests

        headers = {"Authorization": f"token {self._token}"}
        return requests.request(method, f"{self.address}/hub/api/{path}", headers=headers, timeout=60, **said)

    def servers(self, user):
        """The servers of a user, by name."""
        return self.call("GET", f"users/{user}").json()["servers"]

    def ask(self, user, options=None):
        """For a server of a user."""
        assert self.call("POST", f"users/{user}").status_code in {201, 409}
        asked = self.call("POST", f"users/{user}/server", json=options)
        assert asked.status_code in {201, 202}, asked.text

    def refused(self, user, options=None):
        """Why a server does not start, as its page shows it."""
        asked = self.call("POST", f"users/{user}/server", json=options)
        if asked.status_code not in {201, 202}:
            return asked.json()["message"]
        last = list(self.progress(user))[-1]
        assert last["failed"], last
        return last["message"]

    def progress(self, user):
        """What the page of a server that starts is told, one by one."""
        import requests

        headers = {"Authorization": f"token {self._token}"}
        place = f"{self.address}/hub/api/users/{user}/server/progress"
        with requests.get(place, headers=headers, stream=True, timeout=self.timeout) as answer:
            for line in answer.iter_lines(decode_unicode=True):
                if line.startswith("data: "):
                    yield json.loads(line.removeprefix("data: "))

    def started(self, user, options=None):
        """The user's server when it is ready."""
        self.ask(user, options)

        def ready():
            if self._process.poll() is not None:
                raise RuntimeError(f"jupyterhub ended with {self._process.returncode}")
            servers = self.servers(user)
            if "" not in servers:
                raise RuntimeError("the hub gave up on the server")
            return servers[""] if servers[""]["ready"] else None

        return until("the server being ready", ready, self.timeout)

    def token_of(self, user):
        """A token by which the user's server is used."""
        made = self.call("POST", f"users/{user}/tokens", json={"note": "driver", "expires_in": 3600})
        made.raise_for_status()
        return made.json()["token"]


async def kernel_prints(url, token, code, timeout, kernel=None):
    """Run `code` in a kernel (a new one, unless it is named) through the proxy; what it printed."""
    from tornado.httpclient import HTTPRequest
    from tornado.websocket import websocket_connect

    auth = {"Authorization": f"token {token}"}
    kernel = kernel or new_kernel(url, token, timeout)
    session, message = uuid.uuid4().hex, uuid.uuid4().hex
    place = f"{url.replace('http', 'ws', 1)}api/kernels/{kernel}/channels?session_id={session}"
    connection = await websocket_connect(HTTPRequest(place, headers=auth))
    header = {
        "msg_id": message, "username": "", "session": session, "msg_type": "execute_request", "version": "5.3",
    }  # fmt: skip
    content = {"code": code, "silent": False, "store_history": False, "user_expressions": {}, "allow_stdin": False}
    asked = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}
    await connection.write_message(json.dumps(asked))
    printed = ""
    async with asyncio.timeout(timeout):
        while (raw := await connection.read_message()) is not None:
            said = json.loads(raw)
            if said.get("parent_header", {}).get("msg_id") != message:
                continue
            if said["msg_type"] == "stream":
                printed += said["content"]["text"]
            if said["msg_type"] == "error":
                raise RuntimeError(said["content"])
            if said["msg_type"] == "status" and said["content"]["execution_state"] == "idle":
                connection.close()
                return printed
    raise RuntimeError("the kernel closed its WebSocket")


def new_kernel(url, token, timeout):
    """Its id."""
    import requests

    made = requests.post(f"{url}api/kernels", headers={"Authorization": f"token {token}"}, json={}, timeout=timeout)
    made.raise_for_status()
    return made.json()["id"]


def single_user_server(program="jupyterhub-singleuser"):
    """Where the program is that is installed beside this Python."""
    place = Path(sys.executable).parent / program
    assert place.exists(), f"{place} is missing"
    return str(place)


def _free_ports(how_many):
    held = [socket.socket() for _ in range(how_many)]
    for each in held:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return ports


def _proxy_command():
    if found := shutil.which(PROXY):
        return found
    words = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", "npm", f"{PROXY}@4"]
    subprocess.run(words, check=True, timeout=300)
    return str(Path("npm/node_modules/.bin", PROXY).absolute())
