"""Small images for tests of containers, made of a busybox: two megabytes, nothing is pulled from anywhere."""

import hashlib
import io
import os
import platform
import shutil
import socket
import struct
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

BUSYBOX: Final = Path("/bin/busybox")
NO_BUSYBOX: Final = "there is no static busybox here (Debian package busybox-static)"
_APPLETS: Final = (
    "awk", "cat", "dd", "echo", "env", "false", "grep", "head", "id", "kill", "ls", "mkdir", "mknod", "mount", "ps", "pwd",
    "readlink", "setsid", "sh", "sleep", "tail", "touch", "true", "tr", "wget",
)  # fmt: skip


def busybox_root(path: Path) -> Path:
    """A root file system: `/bin` with links to its busybox, `/etc` with the name of the image."""
    for name in ("bin", "etc", "tmp", "usr"):
        (path / name).mkdir(parents=True)
    shutil.copy(BUSYBOX, path / "bin" / "busybox")
    for applet in _APPLETS:
        (path / "bin" / applet).symlink_to("busybox")
    (path / "usr" / "bin").symlink_to("/bin")
    (path / "etc" / "image").write_text("busybox\n")
    return path


def tar_of(root: Path, *, mode: Literal["w", "w:gz"] = "w") -> bytes:
    """A directory as an archive."""
    sink = io.BytesIO()
    with tarfile.TarFile.open(fileobj=sink, mode=mode) as tar:
        for path in sorted(root.rglob("*")):
            tar.add(path, str(path.relative_to(root)), recursive=False, filter=_roots)
    return sink.getvalue()


def _roots(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    return member


def squashfs_of(root: Path) -> bytes:
    """A directory as a compressed file system."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "squashfs")
        subprocess.run(["tar2sqfs", "--quiet", str(path)], input=tar_of(root), check=True)
        return path.read_bytes()


def sif_of(data: bytes, *, system: int = 1, architecture: str = "") -> bytes:
    """
    A file system as a SIF file: a header, a description of its definition (unused) and of its partition, and that.
    """
    code = architecture or {"x86_64": "02", "aarch64": "04"}[platform.machine()]
    begin, total = 4096, 48
    about = struct.pack("<2i3s", system, 2, code.encode())
    described = struct.pack(
        "<i?3I7q128s384s", 0x4004, True, 2, 0xF0000001, 0, begin + total * 585, len(data), len(data), 0, 0, 0, 0,
        b"image", about,
    )  # fmt: skip
    header = struct.pack(
        "<32s10s3s3s16s8q", b"#!/usr/bin/env run-singularity\n", b"SIF_MAGIC", b"01", code.encode(), b"", 0, 0,
        total - 1, total, begin, total * 585, begin + total * 585, len(data),
    )  # fmt: skip
    return header.ljust(begin, b"\0") + (b"\0" * 585 + described).ljust(total * 585, b"\0") + data


def tar_with(*members: tarfile.TarInfo, data: bytes = b"x") -> bytes:
    """An archive of just these members; regular files among them hold `data`."""
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as tar:
        for member in members:
            member.size = len(data) if member.isreg() else 0
            tar.addfile(member, io.BytesIO(data))
    return sink.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o644) -> tarfile.TarInfo:
    """One member of an archive."""
    found = tarfile.TarInfo(name)
    found.type, found.linkname, found.mode = kind, link, mode
    return found


def oci_layout(path: Path, *layers: bytes, config: dict[str, Any] | None = None) -> Path:
    """An OCI image layout with these layers."""
    blobs = path / "blobs" / "sha256"
    blobs.mkdir(parents=True)

    def blob(data: bytes, kind: str) -> dict[str, Any]:
        digest = hashlib.sha256(data).hexdigest()
        (blobs / digest).write_bytes(data)
        return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(data)}

    prefix = "application/vnd.oci.image"
    manifest = {
        "schemaVersion": 2,
        "config": blob(msgspec.json.encode({"config": config or {}}), f"{prefix}.config.v1+json"),
        "layers": [blob(layer, f"{prefix}.layer.v1.tar") for layer in layers],
    }
    index = {
        "schemaVersion": 2,
        "manifests": [blob(msgspec.json.encode(manifest), f"{prefix}.manifest.v1+json")],
    }
    (path / "index.json").write_bytes(msgspec.json.encode(index))
    (path / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    return path


def docker_archive(path: Path, *layers: bytes, config: dict[str, Any] | None = None) -> Path:
    """What `docker save` writes, as a directory."""
    path.mkdir(parents=True)
    names = [f"layer{number}.tar" for number in range(len(layers))]
    for name, layer in zip(names, layers, strict=True):
        (path / name).write_bytes(layer)
    (path / "config.json").write_bytes(msgspec.json.encode({"config": config or {}}))
    saved = [{"Config": "config.json", "RepoTags": ["a:1"], "Layers": names}]
    (path / "manifest.json").write_bytes(msgspec.json.encode(saved))
    return path


def missing(program: str, package: str) -> str:
    """Why a test cannot run; empty if it can."""
    if not os.access(BUSYBOX, os.X_OK):
        return NO_BUSYBOX
    if program == "dockerd" and "docker0" in (name for _, name in socket.if_nameindex()):
        return "a Docker engine is at work here, and a second one without a bridge would remove that of the first"
    return (
        ""
        if shutil.which(program, path="/usr/sbin:/usr/bin:/bin")
        else f"no {program} (Debian package {package})"
    )
