"""
Images that are built without a network, on an engine of the test's own, from the packages of the distribution.
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from kettle.embedded.binaries import nats_server, postgres_bin

TOP: Final = Path(__file__).parents[2]
_HERE: Final = Path(__file__).parent / "images"
BASE: Final = "kettle-base"


class LocalImages:
    """Those that an engine has, which `options` of its command lead to."""

    def __init__(self, options: list[str], place: Path) -> None:
        self._options = options
        self._place = place

    @property
    def host(self) -> str:
        """The address of the engine."""
        return self._options[-1]

    def docker(self, *words: str, within: float = 900) -> str:
        """What a command of the engine says; it has to succeed."""
        environ = {**os.environ, "DOCKER_BUILDKIT": "0"}
        done = subprocess.run(
            ["docker", *self._options, *words],
            env=environ,
            capture_output=True,
            text=True,
            timeout=within,
            check=False,
        )
        assert 0 == done.returncode, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout

    def base(self, name: str) -> str:
        """A base, made of packages of the distribution that the machine is of."""
        archive = self._place / f"{name}.tar"
        words = [str(TOP / "infra/images/make-base"), name, str(archive)]
        made = subprocess.run(words, capture_output=True, text=True, check=False, timeout=1800)
        assert 0 == made.returncode, made.stderr[-2000:]
        self.docker("import", str(archive), f"{BASE}:{name}")
        archive.unlink()
        return f"{BASE}:{name}"

    def build(self, target: str, tag: str, *more: str, base: str = "") -> str:
        """One of our images, upon a base other than its own if that is named; its bases have been made."""
        base = base or ("worker" if target == "worker" else "run")
        arguments = [f"--build-arg=BASE={BASE}:{base}", f"--build-arg=BUILD_BASE={BASE}:build"]
        self._build("Dockerfile", TOP, target, tag, *arguments, *more)
        return tag

    def build_of_facility(self, target: str, tag: str, *arguments: str) -> str:
        """One of the images that a facility has besides the pool."""
        self._build("facility.Dockerfile", TOP / "infra/images", target, tag, *arguments)
        return tag

    def _build(self, file: str, context: Path, target: str, tag: str, *more: str) -> None:
        words = ["--network=none", f"--file={TOP / 'infra/images' / file}", f"--target={target}", *more]
        self.docker("build", *words, "--tag", tag, str(context))

    def servers(self) -> None:
        """
        What the compose files need of the images of NATS and PostgreSQL, from the servers of a personal pool.
        """
        context = self._place / "servers"
        context.mkdir()
        shutil.copy(nats_server(), context / "nats-server")
        shutil.copy("/bin/busybox", context / "busybox")
        installed = postgres_bin().parent
        shutil.copytree(installed, context / "pginstall", symlinks=True)
        shutil.copytree(installed.parent.with_name(f"{installed.parent.name}.libs"), context / "libraries")
        shutil.copy(_HERE / "docker-entrypoint", context)
        self.docker("tag", f"{BASE}:run", "kettle-test-base")
        for name in ("nats", "postgres"):
            file = str(_HERE / f"Dockerfile.{name}")
            self.docker(
                "build", "--network=none", "--file", file, "--tag", f"kettle-test-{name}", str(context)
            )
