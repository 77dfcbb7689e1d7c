"""
Pilots of DIRAC, which submits them to our compute entrypoint as to an HTCondor-CE: from another machine, with a token.
"""

import asyncio
import os
import shutil
import socket
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.integration.iam.issuer import TokenIssuer, token_issuer

from kettle.client.connections.locating import locate
from kettle.client.connections.pool_file import FILE
from kettle.pool.personal_settings import Tables
from kettle.testing.commands.running import execute
from kettle.testing.servers import selection
from kettle.testing.servers.fake_slurm import FakeSlurm
from kettle.testing.throwaway_pool import throwaway_pool

from .client_environments import SCRIPTS, python_of

SERVICES = ["collector", "negotiator", "schedd", "shadow", "startd", "accounting", "iam", "ce"]
AUDIENCE = "https://pool.example"
ROUTES = """
use ROUTES : CE
JOB_ROUTER_ROUTE_NAMES = Slurm
JOB_ROUTER_ROUTE_Slurm @=end
    GridResource = "batch cluster"
    default_queue = pilots
@end
"""
RULES = """
[[rules]]
when.issuer = "{issuer}"
when.subject = "pilots"
owner = "{owner}"
vo = "belle"
"""


def settings(issuer: TokenIssuer, fake: FakeSlurm, place: Path, owner: str) -> Tables:
    """An entrypoint for one VO, with one route to a batch system; pilots run as `owner`."""
    (place / "rules").write_text(RULES.replace("{issuer}", issuer.url).replace("{owner}", owner))
    (place / "routes").write_text(ROUTES)
    batch: dict[str, Any] = {
        "name": "cluster",
        "kind": "slurm",
        "directory": str(place / "sandboxes"),
        "environment": fake.environment,
        "accounting": True,
        "poll_least": 0.2,
        "poll_most": 1.0,
    }
    return {
        "master": {"daemon_list": SERVICES},
        "authorization": {"domain": "pool.example", "rules": str(place / "rules")},
        "iam": {"issuers": {issuer.url: [AUDIENCE]}},
        "schedd": {"entrypoint": True, "route_jobs": "true", "vos": {"belle": {}}},
        "ce": {"routes": str(place / "routes"), "batch": [batch]},
    }


@pytest.mark.skipif(
    not selection.servers_are_ours(), reason="who may connect to servers of somebody else is theirs to say"
)
async def test_diracs_pilots_come_through_the_entrypoint(tmp_path: Path, place: Path, another: str) -> None:
    """
    Its own class for HTCondor-CEs, unmodified, submits pilots, sees how they are, fetches their output, sees that one failed, and kills two.
    """
    python = await python_of("dirac_htcondorce.py", "dirac", tmp_path)
    home = tmp_path / "dirac"
    home.mkdir()
    with tempfile.TemporaryDirectory(prefix="kettle-dirac-", dir="/tmp") as open_to_all:
        os.chmod(open_to_all, 0o755)  # noqa: PTH101 - a string
        with FakeSlurm(Path(open_to_all, "slurm")) as fake:
            fake.set_mode("runs")
            for path in (fake.place, *fake.place.iterdir()):
                shutil.chown(path, another)
            await _submitted_by_dirac(python, place, home, Path(open_to_all), fake, another)


async def _submitted_by_dirac(
    python: str, place: Path, home: Path, there: Path, fake: FakeSlurm, owner: str
) -> None:
    async with (
        token_issuer() as issuer,
        throwaway_pool(home / "pool", settings=settings(issuer, fake, there, owner)) as pool,
    ):
        (home / "token").write_text(issuer.token("pilots", AUDIENCE))
        (home / "proxy").write_text("a proxy, which is sent along as DIRAC wants it\n")
        (home / "proxy").chmod(0o600)
        address = f"http://127.0.0.1:{(pool.home / 'iam' / 'port').read_text()}"
        known = await asyncio.to_thread(
            locate, {"KETTLE_POOL_URL": address, "BEARER_TOKEN_FILE": str(home / "token")}
        )
        host = socket.gethostname()
        urls = f"{known.nats_url},nats://{host}:4222"
        elsewhere = msgspec.structs.replace(known, nats_url=urls, credentials="", token="", user="")
        (home / FILE).write_bytes(msgspec.json.encode(elsewhere))
        environ = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(home),
            "KETTLE_HOME": str(home),
            "X509_USER_PROXY": str(home / "proxy"),
            "DIRAC_CE": host,
            "DIRAC_TOKEN": str(home / "token"),
        }
        words = [python, str(SCRIPTS / "dirac_htcondorce.py"), str(place), "--workdir", str(home / "work")]
        said = await execute([*words, "--timeout", "120"], home, environ, within_s=400.0)
        why = await pool.kettle("why", "--constraint", "true", "--all-users")
        assert "PROVEN" == said.out.splitlines()[-1].partition(":")[0], (
            f"{said.out}\n{said.err}\n{why}\n{fake.jobs()}\n{pool.log('ce')}"
        )
        assert 0 == said.status
        assert 6 == len(fake.jobs())
