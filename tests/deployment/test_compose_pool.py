"""A pool in containers, as `make compose-demo` runs it, on an engine of the test's own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .local_images import LocalImages

WITHIN_S = 900.0


@pytest.mark.slow
def test_the_demonstration_runs(images: LocalImages, top: Path) -> None:
    """
    All services come up with secrets of their own, machines join by a token, and sixty jobs bring back what adds up; then nothing is left.
    """
    if shutil.which("docker-compose") is None:
        pytest.skip("docker-compose is not installed (Debian: docker-compose)")
    images.servers()
    names = {
        "NATS": "kettle-test-nats",
        "POSTGRES": "kettle-test-postgres",
        "": "kettle",
        "WORKER": "kettle-worker",
    }
    environ = {
        **os.environ,
        **{f"KETTLE_{name}_IMAGE".replace("__", "_"): image for name, image in names.items()},
        "DOCKER_HOST": images.host,
        "COMPOSE_HTTP_TIMEOUT": "600",
    }
    words = [str(top / "infra/compose/demo"), str(Path(sys.executable).with_name("kettle"))]
    done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=WITHIN_S, check=False)

    assert 0 == done.returncode, done.stdout[-3000:] + done.stderr[-3000:]
    assert "60 jobs, and what they made adds up to 12390, as it should." in done.stdout
    assert "" == images.docker(
        "ps", "--all", "--quiet", "--filter", "label=com.docker.compose.project=kettle-demo"
    )
