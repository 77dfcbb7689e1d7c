"""
The notebook of a demonstration, and how its cells are run in a kernel of a Jupyter server, as JupyterLab runs them.
"""

import asyncio
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp
import msgspec

from kettle_services.cli.errors import CommandError

NAME: Final = "analysis.ipynb"
_WITHIN_S: Final = 180.0
_READS: Final = '''\
def columns(place):
    """Of a file; the cache of the site gives it to whatever reads by XRootD."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "part.npz")
        subprocess.run(["xrdcp", "--silent", place, str(file)], check=True)
        return dict(np.load(file))
'''
_MAKES: Final = "from kettle_services.cli.facility.analysis import columns\n"
_BEGIN: Final = '''\
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from kettle.dask import KettleCluster

PLACES = {places!r}


{columns}

def histogram(place):
    """How many pairs of muons of a part have which invariant mass; a worker computes it."""
    pairs = columns(place)
    angle = np.cosh(pairs["first_eta"] - pairs["second_eta"]) - np.cos(pairs["first_phi"] - pairs["second_phi"])
    mass = np.sqrt(2.0 * pairs["first_pt"] * pairs["second_pt"] * angle)
    return np.histogram(mass, {bins}, (0.0, {highest}))[0]
'''
_CLUSTER: Final = """\
cluster = KettleCluster({workers}, name="analysis", cores=1, memory="512 MB", quiet=True)
client = cluster.get_client()
client.wait_for_workers({workers})
print(cluster.dashboard_link)
"""
_ANALYSIS: Final = """\
parts = client.map(histogram, PLACES)
total = client.submit(lambda counts: sum(counts).tolist(), parts).result()
print(json.dumps(total))
"""
_END: Final = "client.close()\ncluster.close()\n"


class NotebookCells(msgspec.Struct, frozen=True):
    """What is in it."""

    begin: str
    cluster: str
    """Prints where the dashboard of the cluster is."""
    analysis: str
    """Prints the counts."""
    end: str


def cells(
    places: Sequence[str] | Sequence[int], *, files: bool, workers: int, bins: int, highest: float
) -> NotebookCells:
    """Of the analysis of these files, or of these parts that the workers make themselves."""
    columns = _READS if files else _MAKES
    return NotebookCells(
        _BEGIN.format(places=list(places), columns=columns, bins=bins, highest=highest),
        _CLUSTER.format(workers=workers),
        _ANALYSIS,
        _END,
    )


class NotebookServer:
    """The server of a person, as the page of JupyterLab uses it."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        """`url`: its address, with a slash at the end; `session` shows what lets one in."""
        self._url: Final = url
        self._session: Final = session

    @classmethod
    @asynccontextmanager
    async def used(cls, url: str, token: str) -> AsyncGenerator["NotebookServer"]:
        """The server at an address, for who has a token of it."""
        headers = {"Authorization": f"token {token}"}
        async with aiohttp.ClientSession(headers=headers) as session:
            yield cls(url, session)

    async def save(self, notebook: NotebookCells) -> None:
        """Have it there as a file; raises CommandError."""
        made: list[dict[str, Any]] = [
            {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": text}
            for text in msgspec.structs.astuple(notebook)
        ]
        content: dict[str, Any] = {"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        await self._asked("PUT", f"api/contents/{NAME}", {"type": "notebook", "content": content})

    async def kernel(self) -> str:
        """The id of a new one; raises CommandError."""
        return str((await self._asked("POST", "api/kernels", {}))["id"])

    async def run(self, kernel: str, text: str) -> str:
        """What a cell prints in a kernel; raises CommandError if it fails."""
        session, message = uuid.uuid4().hex, uuid.uuid4().hex
        header = {
            "msg_id": message, "username": "", "session": session, "msg_type": "execute_request", "version": "5.3",
        }  # fmt: skip
        content: dict[str, Any] = {
            "code": text,
            "silent": False,
            "store_history": True,
            "user_expressions": {},
            "allow_stdin": False,
        }
        asked: dict[str, Any] = {
            "header": header,
            "parent_header": {},
            "metadata": {},
            "content": content,
            "channel": "shell",
        }
        place = f"{self._url}api/kernels/{kernel}/channels?session_id={session}"
        async with asyncio.timeout(_WITHIN_S), self._session.ws_connect(place, max_msg_size=0) as connection:
            await connection.send_json(asked)
            printed = ""
            async for each in connection:
                said: dict[str, Any] = each.json()
                if said.get("parent_header", {}).get("msg_id") != message:
                    continue
                match said["msg_type"], said["content"]:
                    case "stream", {"name": "stdout", "text": str(more)}:
                        printed += more
                    case "error", {"ename": kind, "evalue": value}:
                        raise CommandError(f"a cell of the notebook fails: {kind}: {value}")
                    case "status", {"execution_state": "idle"}:
                        return printed
                    case _:
                        pass
        raise CommandError("the kernel of the notebook has ended")

    async def _asked(self, method: str, path: str, body: object) -> dict[str, Any]:
        async with self._session.request(method, self._url + path, json=body) as answer:
            if answer.status >= 300:
                raise CommandError(f"the server refuses {method} {path}: {answer.status} {answer.reason}")
            return msgspec.json.decode(await answer.read(), type=dict[str, Any])
