"""
A registry of container images for tests: Debian's `docker-registry` on a port of loopback, with one account.
"""

import base64
import gzip
import hashlib
import platform
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from kettle.testing.container_images import tar_of
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.held_port import held_port

PROGRAM: Final = "docker-registry"
ACCOUNT: Final = "kettle:open sesame"
_HASHED: Final = "kettle:$2b$04$abcdefghijklmnopqrstuu/LVz6MZlItEy42I2juLihZ66HnQx/cy\n"
_PAUSE_S: Final = 0.05
_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
_OCI: Final = "application/vnd.oci.image"


class Registry:
    """A registry that runs; `host` is how images in it are named."""

    def __init__(self, host: str, logins: Path) -> None:
        self.host = host
        self.logins = logins
        """A file with its account, as engines read it."""

    def push(self, name: str, root: Path, *, config: dict[str, Any] | None = None) -> str:
        """Put a directory into the registry, as an image of one layer; its full name."""
        layer = tar_of(root)
        described = {
            "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
            "os": "linux",
            "config": config or {},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
        }
        repository, _, tag = name.partition(":")
        manifest = {
            "schemaVersion": 2,
            "mediaType": f"{_OCI}.manifest.v1+json",
            "config": self._blob(repository, msgspec.json.encode(described), f"{_OCI}.config.v1+json"),
            "layers": [self._blob(repository, gzip.compress(layer, 1), f"{_OCI}.layer.v1.tar+gzip")],
        }
        self._ask(
            "PUT", f"/v2/{repository}/manifests/{tag}", msgspec.json.encode(manifest), manifest["mediaType"]
        )
        return f"{self.host}/{name}"

    def _blob(self, repository: str, data: bytes, kind: str) -> dict[str, Any]:
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        place = self._ask("POST", f"/v2/{repository}/blobs/uploads/", b"", kind)
        place = place.partition(self.host)[2] or place
        self._ask(
            "PUT", f"{place}{'&' if '?' in place else '?'}digest={digest}", data, "application/octet-stream"
        )
        return {"mediaType": kind, "digest": digest, "size": len(data)}

    def _ask(self, method: str, path: str, data: bytes, kind: Any) -> str:
        request = urllib.request.Request(f"http://{self.host}{path}", data, method=method)
        request.add_header("Content-Type", kind)
        request.add_header("Authorization", f"Basic {base64.b64encode(ACCOUNT.encode()).decode()}")
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:  # noqa: S310 - as above
            return str(answer.headers.get("Location", ""))


@contextmanager
def registry(place: Path) -> Generator[Registry]:
    """A registry with its files in `place`, for the context."""
    host = f"127.0.0.1:{held_port()}"
    (place / "accounts").write_text(_HASHED)
    (place / "config.yml").write_text(
        f"version: 0.1\nlog: {{level: warn}}\nhttp: {{addr: {host}}}\n"
        f"storage: {{filesystem: {{rootdirectory: {place / 'data'}}}}}\n"
        f"auth: {{htpasswd: {{realm: kettle, path: {place / 'accounts'}}}}}\n"
    )
    login = base64.b64encode(ACCOUNT.encode()).decode()
    (place / "logins.json").write_bytes(msgspec.json.encode({"auths": {host: {"auth": login}}}))
    # Engines want to be told that a registry has no TLS; docker knows it of loopback.
    (place / "registries.conf").write_text(f'[[registry]]\nlocation = "{host}"\ninsecure = true\n')
    path = shutil.which(PROGRAM)
    assert path is not None, "the test has looked for it"
    with (place / "log").open("wb") as log:
        process = subprocess.Popen([path, "serve", str(place / "config.yml")], stdout=log, stderr=log)
    try:
        _until_ready(process, host, place / "log")
        yield Registry(host, place / "logins.json")
    finally:
        process.terminate()
        process.wait()


def _until_ready(process: subprocess.Popen[bytes], host: str, log: Path) -> None:
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            urllib.request.urlopen(f"http://{host}/v2/", timeout=PATIENCE_S).close()
        except urllib.error.HTTPError:
            return  # it wants to know who asks
        except OSError:
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"the registry did not start: {log.read_text()[-2000:]}") from None
            time.sleep(_PAUSE_S)
