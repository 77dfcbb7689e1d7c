"""Servers of people as jobs, what people choose, and the tokens that are shown for them."""

import base64
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kettle.accounts.lookup import own_name
from kettle.jobs.quoting import split_v2
from kettle.jupyterhub import server
from kettle.jupyterhub.errors import GatewayUnreachableError, NoTokenError, ServerFailedError
from kettle.jupyterhub.options import ChosenOptions, chosen, form_of, from_form
from kettle.jupyterhub.person_tokens import CommandToken, LoginToken, OwnAccountToken, is_due
from kettle.jupyterhub.server_jobs import MARK, ServerProfile, job_ad, seen_of
from kettle.jupyterhub.server_orders import SECRETS, ServerOrder, ServerSize, mark_of
from kettle.transfer.spooled_jobs import HELD_FOR
from kettle_wire.ads.types import Expr
from kettle_wire.rest.jobs import Job

PROFILE = ServerProfile(
    name="cms", title="CMS <2026>", cpus=2, memory=4096, image="/cvmfs/cms", attributes={"Tag": 1}
)


def token(begins: float, ends: float) -> str:
    claims = {"iat": begins, "exp": ends}
    words = [
        base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=").decode() for each in ({}, claims)
    ]
    return ".".join([*words, "c2ln"])


def test_a_server_is_a_job_without_a_secret() -> None:
    """
    What only the server may know is in none of its attributes; the size is that of the profile where none was chosen.
    """
    order = ServerOrder(
        mark="hub/ada/",
        profile="cms",
        size=ServerSize(memory=512, disk=64),
        command=["jupyterhub-singleuser", "--arg=a b"],
        environment={"JUPYTERHUB_USER": "ada's"},
        secrets={"JUPYTERHUB_API_TOKEN": "canary"},
        key="1",
    )
    ad = job_ad(order, PROFILE)
    assert ["jupyterhub-singleuser", "--arg=a b"] == split_v2(str(ad["Arguments"]))
    assert ["JUPYTERHUB_USER=ada's"] == split_v2(str(ad["Environment"]))
    assert (2, 512, 64 << 10, "/cvmfs/cms", "hub/ada/", 1) == (
        ad["RequestCpus"], ad["RequestMemory"], ad["RequestDisk"], ad["ContainerImage"], ad[MARK], ad["Tag"],
    )  # fmt: skip
    assert "canary" not in msgspec.json.encode(ad).decode()
    assert "canary" not in repr(order)
    assert ad["WantSandboxImage"]
    assert ad["InteractiveJob"]
    assert "Requirements" not in ad
    patient = msgspec.structs.replace(PROFILE, attributes={"InteractiveJob": False})
    assert not job_ad(order, patient)["InteractiveJob"]
    elsewhere = msgspec.structs.replace(PROFILE, requirements='SiteName == "X"', gpus=1, image="docker://lab")
    ad = job_ad(order, elsewhere)
    assert (ad["RequestGPUs"], ad["ContainerImageSource"]) == (1, "docker")
    needed = ad["Requirements"]
    assert isinstance(needed, Expr)
    assert needed.expr.startswith('(SiteName == "X") && (TARGET.Cpus >= RequestCpus)')
    assert needed.expr.endswith(
        "(TARGET.GPUs >= RequestGPUs) && TARGET.HasFileTransfer && TARGET.HasContainer"
    )


@pytest.mark.parametrize(
    ("changes", "expected", "code"),
    [
        ({"state": "idle"}, "queued", 0),
        ({"state": "running"}, "starting", 0),
        ({"state": "suspended"}, "degraded", 0),
        ({"state": "held", "hold_reason": "no image"}, "degraded", 0),
        ({"state": "held", "hold_reason": HELD_FOR}, "requested", 0),
        ({"state": "removed"}, "ended", 1),
        ({"state": "completed", "exit_code": 3}, "ended", 3),
        ({"state": "completed", "exit_signal": 9}, "ended", 137),
    ],
)
def test_what_a_job_says_of_its_server(changes: dict[str, Any], expected: str, code: int) -> None:
    """Each state of a job is one of its server, and only a job on hold waits for somebody."""
    said = {"id": "1.0@schedd", "schedd": "schedd", "cluster": 1, "proc": 0, "owner": "ada", **changes}
    job = msgspec.convert({**said, "submitted": "2026-11-26T12:00:00Z"}, Job)
    seen = seen_of(job, "why")
    stuck = changes.get("hold_reason") == "no image"
    assert (expected, code, stuck) == (seen.state, seen.exit_code, seen.is_stuck)


def test_servers_of_other_hubs_have_other_marks() -> None:
    """Whatever people and servers are called, a mark is one word that no other server has."""
    marks = {
        mark_of(*parts)
        for parts in (("hub", "ada", ""), ("hub2", "ada", ""), ("hub", "ada", "x"), ("hub", "a/da", ""), ("hub", "a", "da/"))
    }  # fmt: skip
    assert 5 == len(marks)
    assert 'hub/"' not in mark_of("hub", '"', "")


def test_what_somebody_chooses() -> None:
    """A field that is left empty is as the profile says; what cannot be is refused in one sentence."""
    form = {"profile": ["cms"], "cpus": ["4"], "memory": [" "], "image": [""]}
    assert ChosenOptions(profile="cms", cpus=4) == chosen(from_form(form))
    assert 2048 == chosen(from_form({**form, "disk": ["2048"]})).size.disk
    for wrong in ({"cpus": "many"}, {"memory": 0}, {"colour": "red"}):
        with pytest.raises(ServerFailedError, match="the options of the server cannot be these"):
            chosen(wrong)
    page = form_of([PROFILE])
    assert "CMS &lt;2026&gt;" in page
    assert "2 cores · 4096 MiB · /cvmfs/cms" in page
    assert all(f'name="{field}"' in page for field in ("cpus", "memory", "disk", "gpus", "image"))


def test_the_launcher_gives_the_server_its_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    They are in a file, which is gone before the server runs; it listens at the loopback interface, with the hub's path.
    """
    monkeypatch.chdir(tmp_path)
    Path(SECRETS).write_text('{"JUPYTERHUB_API_TOKEN": "canary"}')
    ran: list[Any] = []
    published: list[int] = []

    def execvpe(program: str, words: list[str], environ: dict[str, str]) -> None:
        ran.extend((program, words, environ))

    monkeypatch.setattr(os, "execvpe", execvpe)
    monkeypatch.setattr(server, "publish", published.append)
    monkeypatch.setattr(sys, "argv", ["launcher", "jupyterhub-singleuser", "--debug"])
    monkeypatch.setenv("JUPYTERHUB_SERVICE_URL", "http://127.0.0.1:0/user/ada/")
    server.main()
    program, words, environ = ran
    assert ("jupyterhub-singleuser", ["jupyterhub-singleuser", "--debug"]) == (program, words)
    assert "canary" == environ["JUPYTERHUB_API_TOKEN"]
    assert f"http://127.0.0.1:{published[0]}/user/ada/" == environ["JUPYTERHUB_SERVICE_URL"]
    assert not Path(SECRETS).exists()


@pytest.mark.parametrize(
    ("text", "now", "expected"),
    [("", 0, True), ("opaque", 1e12, False), (token(0, 90), 59, False), (token(0, 90), 60, True)],
)
def test_a_token_is_renewed_while_it_is_good(text: str, now: float, *, expected: bool) -> None:
    """When a third of its life is left; one that does not say its end is not."""
    assert expected == is_due(text, now)


async def test_the_token_of_a_login_is_renewed_by_the_hub() -> None:
    """Once for all who ask at the same time; a login that is over says so, and that what runs goes on."""
    state: dict[str, Any] | None = {"access_token": token(0, 90)}
    renewed: list[str] = []

    async def kept() -> dict[str, Any] | None:
        return state

    async def renew() -> None:
        renewed.append("once")
        assert state is not None
        state["access_token"] = token(0, 1e11)

    source = LoginToken(kept, renew, user="ada")
    assert token(0, 1e11) == await source.token()
    await source.token()
    assert ["once"] == renewed

    async def fail() -> None:
        pass

    async def away() -> None:
        raise GatewayUnreachableError("the issuer of your login does not answer")

    almost = token(time.time() - 90, time.time() + 20)
    state = {"access_token": almost}
    assert almost == await LoginToken(kept, away, user="ada").token()
    state = {"access_token": token(0, 90)}
    with pytest.raises(GatewayUnreachableError):
        await LoginToken(kept, away, user="ada").token()
    with pytest.raises(NoTokenError, match="sign in again; what runs goes on"):
        await LoginToken(kept, fail, user="ada").token()
    state = None
    with pytest.raises(NoTokenError, match="enable_auth_state"):
        await LoginToken(kept, fail, user="ada").token()


async def test_the_token_of_a_command(tmp_path: Path) -> None:
    """It is asked for one person, kept as long as it is good, and never shown when it fails."""
    count = tmp_path / "count"
    words = ["sh", "-c", f"echo x >> {count}; echo {{username}}-{token(0, 1e11)}"]
    source = CommandToken(words, user="ada")
    assert f"ada-{token(0, 1e11)}" == await source.token() == await source.token()
    assert 1 == len(count.read_text().split())
    with pytest.raises(NoTokenError, match="exited with code 3") as failed:
        await CommandToken(["sh", "-c", "echo canary; exit 3"], user="ada").token()
    assert "canary" not in str(failed.value)


async def test_the_account_of_the_hub_serves_nobody_else(tmp_path: Path) -> None:
    """Servers of others would run as the account of the hub."""
    (tmp_path / "gateway").mkdir()
    (tmp_path / "gateway" / "token").write_text("secret\n")
    assert "secret" == await OwnAccountToken(tmp_path, user=own_name()).token()
    with pytest.raises(NoTokenError, match="runs servers of"):
        await OwnAccountToken(tmp_path, user="somebody-else").token()
