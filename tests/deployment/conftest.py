import faulthandler
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kettle.testing.container_images import missing
from kettle.testing.servers.container_engines import docker_with_networks

from .local_images import TOP, LocalImages

LONG = "KETTLE_TEST_LONG"


@pytest.fixture(autouse=True)
def without_time_limit() -> None:
    """The tests here take minutes each, and say themselves how many."""
    if LONG in os.environ:
        faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="session")
def top() -> Path:
    """The top of the repository."""
    return TOP


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalImages]:
    """An engine with our two images."""
    if LONG not in os.environ:
        pytest.skip(f"it takes minutes: {LONG}=1 builds images and runs them")
    faulthandler.cancel_dump_traceback_later()  # of the test that is the first to ask for them
    if reason := missing("dockerd", "docker.io"):
        pytest.skip(reason)
    if os.geteuid() != 0 or shutil.which("mmdebstrap") is None:
        pytest.skip(
            "only root can start an engine, and mmdebstrap makes its images (Debian package mmdebstrap)"
        )
    subprocess.run(
        [str(TOP / "infra/images/fetch-wheels")],
        env={**os.environ, "PYTHON": sys.executable},
        check=True,
        timeout=900,
    )
    with docker_with_networks() as options:
        made = LocalImages(options, tmp_path_factory.mktemp("images"))
        for name in ("run", "build", "worker"):
            made.base(name)
        made.build("services", "kettle")
        made.build("worker", "kettle-worker")
        yield made


@pytest.fixture(scope="session")
def facility_images(images: LocalImages) -> LocalImages:
    """The engine with the images of a facility, too."""
    if shutil.which("npm") is None:
        pytest.skip("npm, which brings the proxy of a hub, is not installed")
    subprocess.run(
        [str(TOP / "infra/images/fetch-hub")],
        env={**os.environ, "PYTHON": sys.executable},
        check=True,
        timeout=900,
    )
    images.base("hub")
    images.build("services", "kettle-with-node", base="hub")
    # A builder without BuildKit makes the cache on its way to the hub, too.
    base = f"--build-arg=BASE={images.base('xcache')}"
    images.build_of_facility("xcache", "kettle-xcache", base)
    images.build_of_facility("hub", "kettle-hub", "--build-arg=KETTLE=kettle-with-node", base)
    return images
