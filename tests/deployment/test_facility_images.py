"""The images that a facility has besides the pool, built and run: a hub, and a cache of XRootD."""

import os
import secrets
import shutil
from pathlib import Path

import pytest

from .local_images import LocalImages
from .test_images import CLOSED, described

NUMBER = 9618
"""The account of our containers, and its group."""
IN_MEMORY = f"uid={NUMBER},gid={NUMBER},mode=0700"
ORIGIN = """\
xrd.port 1095
all.export /data r/o
all.adminpath /tmp/origin
all.pidpath /tmp/origin
"""
ANSWERS = """\
import sys, time, urllib.error, urllib.request
until = time.monotonic() + 120
while True:
    try:
        with urllib.request.urlopen(sys.argv[1], timeout=10) as answer:
            print(answer.status, answer.read().decode())
            break
    except OSError:
        if time.monotonic() > until:
            raise
        time.sleep(0.2)
"""
"""What is there when it answers; a container says it by nothing else."""

pytestmark = pytest.mark.slow


def named(host: str) -> list[str]:
    """A container is found by itself under the name that it has in a deployment."""
    return [f"--hostname={host}", f"--add-host={host}:127.0.0.1"]


@pytest.mark.parametrize(("name", "program"), [("kettle-hub", "jupyterhub"), ("kettle-xcache", "xrootd")])
def test_an_image_of_a_facility_says_what_it_is(
    facility_images: LocalImages, name: str, program: str
) -> None:
    """Its title, an account that is not root, its program; and it has neither pip nor npm."""
    config = described(facility_images, name)["Config"]
    assert name == config["Labels"]["org.opencontainers.image.title"]
    assert (f"{NUMBER}:{NUMBER}", program) == (config["User"], config["Entrypoint"][0])
    script = "find /opt -perm /022 ! -type l 2>/dev/null; which pip pip3 npm gcc; id -u"
    said = facility_images.docker("run", "--rm", *CLOSED, "--entrypoint=sh", name, "-c", script)
    assert f"{NUMBER}\n" == said


def test_a_hub_begins_with_the_settings_of_a_site(
    facility_images: LocalImages, top: Path, tmp_path: Path
) -> None:
    """
    The file that a site copies, and its secrets, are all that it needs: hub and proxy answer, with a root that cannot be written.
    """
    given = tmp_path / "secrets"
    given.mkdir()
    for name in ("hub.client", "hub.cookies", "hub.crypt", "hub.proxy"):
        (given / name).write_text(f"{secrets.token_hex(32)}\n")
        (given / name).chmod(0o600)
    (given / "ca.pem").write_text("of the pool\n")
    for each in given.iterdir():
        os.chown(each, NUMBER, NUMBER)
    given.chmod(0o755)
    settings = shutil.copy(top / "infra/kubernetes/overlays/af/hub.toml", tmp_path)
    docker = facility_images.docker
    words = [
        f"--volume={given}:/run/secrets:ro",
        f"--volume={settings}:/etc/kettle/hub.toml:ro",
        f"--tmpfs=/srv/hub:{IN_MEMORY}",
        *named("hub"),
    ]
    hub = docker("run", "--detach", *CLOSED, *words, "kettle-hub").strip()
    try:
        for path, says in (("/hub/api/", '{"version": "'), ("/hub/login", "Sign in with the site")):
            said = docker("exec", hub, "python3", "-c", ANSWERS, f"http://127.0.0.1:8000{path}")
            assert says in said, said
    finally:
        told = docker("logs", hub)
        docker("rm", "--force", hub)
    assert "Traceback" not in told, told


def test_a_cache_serves_what_its_origin_has(facility_images: LocalImages, top: Path, tmp_path: Path) -> None:
    """
    Through the cache, told by its address where the file is, a machine has the bytes of the origin; and when the origin is gone it has
    them still.
    """
    data = tmp_path / "data"
    data.mkdir(mode=0o755)
    content = secrets.token_bytes(3 << 20)
    (data / "columns").write_bytes(content)
    (tmp_path / "origin.cfg").write_text(ORIGIN)
    got = tmp_path / "got"
    got.mkdir()
    os.chown(got, NUMBER, NUMBER)
    docker = facility_images.docker
    closed = [each for each in CLOSED if not each.startswith("--network")]
    configuration = top / "infra/kubernetes/overlays/af/xcache.cfg"
    cache = docker(
        "run", "--detach", *CLOSED, *named("xcache"), f"--volume={configuration}:/etc/xrootd/xcache.cfg:ro",
        f"--tmpfs=/run/xrootd:{IN_MEMORY}", f"--tmpfs=/var/spool/xcache:{IN_MEMORY}", "kettle-xcache",
    ).strip()  # fmt: skip
    beside = f"--network=container:{cache}"
    origin = docker(
        "run", "--detach", *closed, beside, f"--volume={tmp_path}/origin.cfg:/etc/xrootd/xcache.cfg:ro",
        f"--volume={data}:/data:ro", "kettle-xcache",
    ).strip()  # fmt: skip
    copy = [
        "run", "--rm", *closed, beside, f"--volume={got}:/got", "--env=XRD_CPUSEPGWRTRD=0", "--env=XRD_CONNECTIONRETRY=60",
        "--env=XRD_CONNECTIONWINDOW=2", "--entrypoint=xrdcp", "kettle-worker", "--force", "--silent",
        "root://127.0.0.1:1094//root://127.0.0.1:1095//data/columns", "/got/columns",
    ]  # fmt: skip
    try:
        docker(*copy)
        assert content == (got / "columns").read_bytes()
        docker("kill", origin)
        (got / "columns").unlink()
        docker(*copy)
        assert content == (got / "columns").read_bytes()
    finally:
        for each in (cache, origin):
            docker("rm", "--force", each)
