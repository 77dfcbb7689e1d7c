"""
SIF files, as Apptainer and Singularity make them: the file system in one of their partitions.

It is a squashfs, which a program turns into a tar stream (`sqfs2tar`): as an account without rights, because its input
is not trusted, and into `Tree`, which accepts untrusted archives.
"""

import os
import platform
import posixpath
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from typing import IO, Final

from kettle.execution.containers.policy import ContainerError, machine_error

PROGRAM: Final = "sqfs2tar"
NO_PROGRAM: Final = f"it takes {PROGRAM} (Debian package squashfs-tools-ng) to read a SIF image"
_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
_MAGIC: Final = b"SIF_MAGIC\0"
_MAGIC_AT: Final = 32
_HEADER: Final = struct.Struct("<32s10s3s3s16s8q")
_DESCRIPTOR: Final = struct.Struct("<i?3I7q128s384s")
_PARTITION: Final = struct.Struct("<2i3s")
_MOST_DESCRIPTORS: Final = 1024
_A_PARTITION: Final = 0x4004
_PRIMARY: Final = 2
_FILE_SYSTEMS: Final = {1: "squashfs", 2: "ext3", 3: "an archive", 4: "raw data", 5: "encrypted squashfs"}
_SQUASHFS: Final = 1
_ARCHITECTURES: Final = {
    "i686": "01", "x86_64": "02", "armv7l": "03", "aarch64": "04", "ppc64": "05", "ppc64le": "06", "s390x": "11",
}  # fmt: skip
_NOBODY: Final = 65534
_SAID_CHARS: Final = 300


def sif_program() -> str | None:
    """The path of what reads the file system of a SIF image here."""
    return shutil.which(PROGRAM, path=_PATH)


def is_sif(file: IO[bytes]) -> bool:
    """Whether a file says that it is one, whatever it is called."""
    file.seek(_MAGIC_AT)
    return file.read(len(_MAGIC)) == _MAGIC


@contextmanager
def tar_of_sif(file: IO[bytes], beside: str, limit: int) -> Generator[IO[bytes]]:
    """
    The primary file system as a tar stream; a copy of it of at most `limit` bytes is made in the directory of `beside`.

    Raises:
        ContainerError: there is none, or none that can be read here.
    """
    program = sif_program()
    if program is None:
        raise machine_error(NO_PROGRAM)
    with tempfile.TemporaryFile(dir=posixpath.dirname(beside)) as copy:
        _copy(file, copy, *_partition(file), limit)
        os.fchmod(copy.fileno(), 0o444)  # it has no name: who has no descriptor does not get to it
        words = [program, "--no-xattr", f"/proc/self/fd/{copy.fileno()}"]
        nobody = _NOBODY if os.geteuid() == 0 else None
        with (
            tempfile.TemporaryFile(dir=posixpath.dirname(beside)) as said,
            subprocess.Popen(
                words, stdout=subprocess.PIPE, stderr=said, stdin=subprocess.DEVNULL, cwd="/", env={},
                pass_fds=[copy.fileno()], user=nobody, group=nobody, extra_groups=None if nobody is None else [],
            ) as process,
        ):  # fmt: skip
            assert process.stdout is not None
            try:
                yield process.stdout
                while process.stdout.read(1 << 20):  # an archive may have more zeros at its end than are read
                    pass
            except BaseException:
                process.kill()
                raise
            if process.wait():
                said.seek(0)
                why = said.read(_SAID_CHARS).decode(errors="replace").strip()
                raise ContainerError(f"the file system in the SIF image cannot be read: {why}")


def _partition(file: IO[bytes]) -> tuple[int, int]:
    """Where the primary file system begins, and how many bytes it has."""
    file.seek(0)
    fields = _HEADER.unpack(_exactly(file, _HEADER.size))
    total, begin = fields[8], fields[9]
    if not 0 <= total <= _MOST_DESCRIPTORS or begin < 0:
        raise ContainerError("the SIF image is damaged: its header makes no sense")
    file.seek(begin)
    for _ in range(total):
        kind, used, *rest = _DESCRIPTOR.unpack(_exactly(file, _DESCRIPTOR.size))
        system, part, architecture = _PARTITION.unpack(rest[-1][: _PARTITION.size])
        if not used or kind != _A_PARTITION or part != _PRIMARY:
            continue
        if system != _SQUASHFS:
            name = _FILE_SYSTEMS.get(system, "of an unknown kind")
            raise ContainerError(f"the file system in the SIF image is {name}, and only squashfs can be read")
        code = architecture.rstrip(b"\0").decode(errors="replace")
        ours = _ARCHITECTURES.get(platform.machine())
        if ours is not None and code not in {"00", ours}:
            raise ContainerError(
                f"the SIF image is for machines of another architecture (its code is {code})"
            )
        return rest[3], rest[4]
    raise ContainerError("the SIF image has no file system to run programs in")


def _copy(file: IO[bytes], sink: IO[bytes], begin: int, size: int, limit: int) -> None:
    if begin < 0 or not 0 <= size <= limit:
        raise ContainerError(
            f"the file system in the SIF image has {size} bytes, more than {limit >> 20} MiB"
        )
    file.seek(begin)
    while size:
        piece = file.read(min(size, 1 << 20))
        if not piece:
            raise ContainerError("the SIF image is damaged: it ends in the middle of its file system")
        sink.write(piece)
        size -= len(piece)
    sink.flush()


def _exactly(file: IO[bytes], size: int) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise ContainerError("the SIF image is damaged: it ends in the middle of its header")
    return data
