"""Where the image of a job comes from: an input file, a file or a directory of the machine."""

import hashlib
import io
import os
import posixpath
import stat
from typing import IO, Final, Protocol

from kettle.execution.attempts.job_spec import Account, Input, JobSpec
from kettle.execution.containers.images.archives import (
    INDEX,
    MOST_JSON,
    ImageConfig,
    unpack_archive,
    unpack_layout,
)
from kettle.execution.containers.images.cache import Image, ImageCache, Unpack, key_of, no_image
from kettle.execution.containers.policy import ContainerError, ContainerPolicy
from kettle.execution.containers.request import ContainerRequest
from kettle.execution.sandbox.directory import acting_as

_LAYOUT: Final = "oci-layout"


def image_cache(policy: ContainerPolicy) -> ImageCache:
    """The images of a machine, those in the stores of its engines included."""
    silent = set[str]()
    """Engines that did not answer: others wait for the image's lock meanwhile."""

    def discard(config: ImageConfig) -> bool:
        # Each page costs a starter memory.
        from kettle.execution.containers.runtimes.engine_client import SilentError, discard_image

        if config.engine in silent:
            return False
        try:
            return discard_image(policy.engines, config.engine, config.reference)
        except SilentError:
            silent.add(config.engine)
            return False

    return ImageCache(policy.images, policy.limit, discard)


def brought(spec: JobSpec, request: ContainerRequest) -> Input | None:
    """
    The input file that is the job's image; it is unpacked from where it lies and not copied into the sandbox.
    """
    if request.local or request.form not in {"files", "sif"}:
        return None
    name = posixpath.basename(request.image)
    return next((file for file in reversed(spec.inputs) if file.name == name), None)


class Images(Protocol):
    """Where unpacked images are: the machine's directory of them, or an engine's store."""

    def have(self, key: str, unpack: Unpack) -> Image:
        """See `ImageCache`."""
        ...


def image_of(spec: JobSpec, request: ContainerRequest, cache: Images, sandbox: str) -> Image:
    """
    The root directory of the image, ready to be mounted, or what an engine calls it.

    The job's account must be able to read what is on the machine already: an image is no way around file modes.

    Raises:
        ContainerError: it is not there, or no image.
        OSError: the machine has no room for it.
    """
    if request.form == "machine":
        return Image("/")
    file = brought(spec, request)
    try:
        if file is not None:
            return _from_input(cache, file)
        path = (
            request.image if request.local else f"{sandbox}/{posixpath.basename(request.image.rstrip('/'))}"
        )
        if os.path.isdir(path):  # noqa: PTH112
            return _from_directory(cache, path, spec.account)
        return _from_file(cache, path, spec.account)
    except ContainerError as error:
        raise of_image(request, error) from error


def of_image(request: ContainerRequest, error: ContainerError) -> ContainerError:
    """The source of an image by its name."""
    return ContainerError(f"the image {request.image}: {error}", code=error.code, subcode=error.subcode)


def _from_input(cache: Images, file: Input) -> Image:
    with io.BytesIO(file.data) if file.data is not None else open(file.path, "rb") as source:  # noqa: PTH123
        # A digest that came with the bytes is only a claim; that of a file was compared when it was fetched.
        key = file.sha256 if file.data is None and file.sha256 else _digest(source)
        return cache.have(key, lambda root, limit: unpack_archive(_rewound(source), root, limit))


def _from_file(cache: Images, path: str, account: Account | None) -> Image:
    with _opened(path, account) as source:
        about = os.fstat(source.fileno())
        key = key_of(os.path.realpath(path), about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns)
        return cache.have(key, lambda root, limit: unpack_archive(source, root, limit))


def _from_directory(cache: Images, path: str, account: Account | None) -> Image:
    try:
        with acting_as(account):
            names = os.listdir(path)  # noqa: PTH208
    except OSError as error:
        raise no_image(path, error) from error
    if _LAYOUT not in names:
        if not names:
            raise ContainerError("the directory is empty")
        return Image(path)
    with _opened(f"{path}/{INDEX}", account) as file:
        index = file.read(MOST_JSON)

    def part(name: str) -> IO[bytes]:
        return io.BytesIO(index) if name == INDEX else _opened(f"{path}/{name}", account)

    return cache.have(key_of(_LAYOUT, index), lambda root, limit: unpack_layout(part, root, limit))


def _opened(path: str, account: Account | None) -> IO[bytes]:
    try:
        with acting_as(account):
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise ContainerError("it is neither a file nor a directory")
        return open(fd, "rb")  # noqa: PTH123
    except OSError as error:
        raise no_image(path, error) from error


def _digest(source: IO[bytes]) -> str:
    return hashlib.file_digest(source, "sha256").hexdigest()  # type: ignore[arg-type]  # any readable file will do


def _rewound(source: IO[bytes]) -> IO[bytes]:
    source.seek(0)
    return source
