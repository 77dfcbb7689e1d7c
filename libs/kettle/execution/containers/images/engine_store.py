"""
The images that an engine has for jobs: pulled from registries, or imported from what jobs bring along.

What a job brings is unpacked by us first, as it is for the other runtimes: that is bounded, follows no name out of the
image, and says in one way what is wrong with it.  The engine gets the result, under a name that is its digest; an archive
that names itself like somebody else's image is not asked how it is called.
"""

import os
import posixpath
import re
import subprocess
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec

from kettle.execution.containers.images.archives import ImageConfig, RunConfig, architecture, configured
from kettle.execution.containers.images.cache import Image, Unpack, key_of
from kettle.execution.containers.images.layers import too_large
from kettle.execution.containers.images.sources import image_cache
from kettle.execution.containers.policy import ContainerError, ContainerPolicy, FoundRuntime, machine_error
from kettle.execution.containers.runtimes.engine_client import (
    ANSWER_S,
    EngineClient,
    EngineError,
    ImageFacts,
    SilentError,
)
from kettle.execution.sandbox.directory import remove_tree
from kettle.jobs.image_registries import DOCKER, divided

_TAR: Final = "/bin/tar"
_LOST: Final = 3
"""How often an image may vanish while we look at it."""
_COMPONENT: Final = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_HOST: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]+)?")
_NAME: Final = re.compile(
    rf"(?P<path>{_COMPONENT}(?:/{_COMPONENT})*)"
    r"(?P<tag>:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?(?P<digest>@sha256:[0-9a-f]{64})?"
)
_LONGEST: Final = 512
_OURS: Final = "kettle-"
"""How the names of imported images begin, on no host."""
_PRIVATE: Final = ".private"
"""How marks of repositories end whose images are pulled with logins of jobs."""
_DOCKERS: Final = "https://index.docker.io/v1/"
"""What Docker's command calls Docker's registry in a file of logins."""
_SPARE_BYTES: Final = 1 << 30
"""What an engine's disk keeps free, whatever is pulled."""
_REFUSED: Final = (
    "manifest unknown", "name unknown", "not found", "name_unknown", "does not exist", "access denied", "denied:",
    "unauthorized", "authentication required", "no basic auth", "invalid username/password", "no matching manifest",
    "no image found in manifest list",
)  # fmt: skip
_RIGHTS: Final = ("denied", "unauthorized", "authentication", "no basic auth", "username")


def full_name(name: str) -> str:
    """
    The name of an image with its registry and tag, so that all engines mean the same one.

    Raises:
        ContainerError: it is no name.
    """
    host, rest = divided(name)
    found = _NAME.fullmatch(rest)
    if found is None or not _HOST.fullmatch(host) or len(name) > _LONGEST:
        raise ContainerError(
            f"{name[:80]!r} is no name of an image: write it like registry.example:5000/group/name:tag"
        )
    path = found["path"]
    if host == "localhost" and path.startswith(_OURS):
        raise ContainerError(f"the image {name} is what another job has brought along: bring it along, too")
    if host == DOCKER and "/" not in path:
        path = f"library/{path}"
    # A digest says all; not every engine takes a tag beside it.
    return f"{host}/{path}{found['digest'] or found['tag'] or ':latest'}"


def refusal(name: str, said: str) -> ContainerError:
    """
    Why an image was not pulled, from the engine's message: either it does not exist or we may not have it, on any
    machine, or the registry cannot be reached from here.
    """
    words = said.replace(name, "").lower()
    if not any(word in words for word in _REFUSED):
        return machine_error(f"the image {name} cannot be pulled from its registry now: {said}")
    if any(word in words for word in _RIGHTS):
        return ContainerError(f"the registry does not give the image {name} to this machine: {said}")
    return ContainerError(f"the registry has no image {name}: {said}")


class EngineStore:
    """
    The images of an engine; our records about them are in the machine's directory of images.  For a builder's process.

    `place` is a directory that the job cannot get at: what an engine is told there, it does with rights that the job has not.
    """

    def __init__(self, found: FoundRuntime, policy: ContainerPolicy, sandbox: str, place: str) -> None:
        self._client = EngineClient(found, sandbox)
        self._policy = policy
        self._cache = image_cache(policy)
        self._place = place

    def have(self, key: str, unpack: Unpack) -> Image:
        """An image that is imported from its unpacked files, see `ImageCache`."""
        name = self._client.name
        key = key_of(name, key)

        def imported(root: str, limit: int) -> ImageConfig:
            config = unpack(root, limit)
            reference = import_directory(
                self._client, root, f"{repository(self._policy.images)}:{key}", timeout=self._policy.pull_s
            )
            remove_tree(root)
            os.mkdir(root)  # noqa: PTH102
            return msgspec.structs.replace(config, engine=name, reference=reference)

        for _ in range(_LOST):
            image = self._cache.have(key, imported)
            if self._client.image(image.config.reference) is not None:
                return image
            image.release()  # somebody else has removed it
            self._cache.drop(key)
        raise machine_error(f"{name} does not keep the images that it is given")

    def pulled(self, name: str, *, always: bool, login: str = "") -> Image:
        """
        An image of a registry; `always`: the one that has this name now, not one that was pulled before; `login`: the job's own.

        What was pulled with somebody's login is not there for others: of its repository, the registry is asked for each job, with
        the login that this one has, or the machine's.

        Raises:
            ContainerError: the image is not available.
        """
        reference = full_name(name)
        private = self._private_mark(reference)
        for _ in range(_LOST):
            before = facts = self._client.image(reference)
            if login:
                private.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                private.touch(mode=0o600)  # before the image is there
            if facts is None or always or private.exists():
                self._pull(reference, login)
                if not login:
                    private.unlink(missing_ok=True)  # everybody's jobs get it here
                facts = self._client.image(reference)
            if facts is None:
                continue  # it was removed at once, for want of room
            key = key_of(self._client.name, facts.id)
            ours = before is None or before.id != facts.id
            config = self._checked(name, facts, ours=ours)
            if ours:
                return msgspec.structs.replace(self._cache.have(key, partial(_made, config)), fresh=True)
            return self._cache.find(key) or Image("", config)
        raise machine_error(f"{self._client.name} does not keep the image {name}")

    def _checked(self, name: str, facts: ImageFacts, *, ours: bool) -> ImageConfig:
        """How an image is run, if it is one for us."""
        error = None
        if ours and facts.size > self._policy.limit:
            error = too_large(self._policy.limit)
        elif facts.architecture not in {"", architecture()}:
            error = ContainerError(
                f"the image {name} is for {facts.architecture}, and this machine is {architecture()}"
            )
        elif self._client.name == "docker" and facts.run.get("Volumes"):
            # It would make them of its own disk, writable, and nobody would count what is in them.
            error = ContainerError(
                f"the image {name} declares volumes ({', '.join(sorted(facts.run['Volumes']))}), which docker would put "
                f"outside of the job's disk: build it without VOLUME, or bring it along as an archive"
            )
        if error is not None:
            if ours:
                with suppress(SilentError):  # the image stays, and the error is reported
                    self._client.remove_image(facts.id)
            raise error
        config = configured(msgspec.convert(facts.run, RunConfig), facts.size)
        return msgspec.structs.replace(config, engine=self._client.name, reference=facts.id)

    def _private_mark(self, reference: str) -> Path:
        """A file that is there if images of this repository were pulled with logins of jobs."""
        return Path(self._policy.images, key_of(self._client.name, _repository_of(reference)) + _PRIVATE)

    def _pull(self, reference: str, login: str) -> None:
        file, options = self._policy.auth_file, list[str]()
        words = ["pull", "--quiet"]
        with ExitStack() as undo:
            if login:
                file = undo.enter_context(_login_file(reference, login))
            if self._client.name == "docker":
                if file:  # a directory as docker wants it: with the file, by its name there
                    place = undo.enter_context(TemporaryDirectory(prefix="docker-", dir=self._place))
                    os.symlink(file, f"{place}/config.json")  # noqa: PTH211 - strings
                    options = ["--config", place]
                words.append(reference)
            else:
                words += [f"--authfile={file}"] if file else []
                words.append(f"docker://{reference}")  # else it might be the name of a file
            try:
                watch = bounded(self._client.free_bytes(), self._policy.limit)
                self._client.run(*words, options=options, timeout=self._policy.pull_s, watch=watch)
            except EngineError as error:
                raise refusal(reference, str(error)) from error


def _repository_of(reference: str) -> str:
    """An image's full name without its tag and digest."""
    host, rest = divided(reference)
    return f"{host}/{rest.partition('@')[0].partition(':')[0]}"


@contextmanager
def _login_file(reference: str, login: str) -> Generator[str]:
    """A file as engines want it for logging in, which is in our memory alone, and gone with us."""
    host, _ = divided(reference)
    names = [host, _DOCKERS] if host == DOCKER else [host]
    text = msgspec.json.encode({"auths": {name: {"auth": login} for name in names}})
    with open(os.memfd_create("login", os.MFD_CLOEXEC), "wb", buffering=0) as file:  # noqa: PTH123 - a descriptor
        file.write(text)
        yield f"/proc/{os.getpid()}/fd/{file.fileno()}"


def bounded(free: Callable[[], int], limit: int) -> Callable[[], None]:
    """
    A watch over a pull: `free` returns the bytes that are left on an engine's disk, `limit` the maximum of an image.

    During a pull an image takes space twice, packed and unpacked. The size that a registry announces may be wrong.
    """
    first = free()

    def check(now: int) -> None:
        if now < _SPARE_BYTES:
            raise EngineError(f"no more than {now >> 20} MiB are free on the engine's disk")
        if first - now > 2 * limit:
            raise EngineError(f"the engine's disk has filled by {(first - now) >> 20} MiB meanwhile")

    check(first)
    return lambda: check(free())


def _made(config: ImageConfig, _root: str, _limit: int) -> ImageConfig:
    """What unpacks an image whose files the engine has already."""
    return config


def import_directory(client: EngineClient, root: str, name: str, *, timeout: float) -> str:
    """
    Make an engine's image of a directory, as root's files, within `timeout` seconds; what the engine calls it.

    Raises:
        ContainerError: it has none.
    """
    words = [_TAR, "--numeric-owner", "--owner=0", "--group=0", "-C", root, "-c", "."]
    with subprocess.Popen(words, stdout=subprocess.PIPE, env={"PATH": "/usr/bin:/bin"}, cwd="/") as tar:
        assert tar.stdout is not None
        try:
            client.run("import", "-", name, stdin=tar.stdout, timeout=timeout)
        except EngineError as error:
            tar.kill()
            raise machine_error(f"{client.name} cannot import the image: {error}") from error
    if tar.returncode:
        with suppress(SilentError):
            client.remove_image(name)
        raise machine_error("the unpacked image cannot be read")
    facts = client.image(name)
    if facts is None:
        raise machine_error(f"{client.name} has imported the image and has none")
    return facts.id


def repository(images: str) -> str:
    """What imported images are called in an engine that several directories of images may share."""
    return f"localhost/{_OURS}{key_of(os.path.realpath(images))[:16]}"


def tidy(policy: ContainerPolicy, watch: Callable[[], None]) -> None:
    """Have engines remove what they imported for us and we have no record of. Raises EngineError, OSError."""
    known = {path.name for path in Path(policy.images).glob("*") if path.suffix == ""}
    ours = repository(policy.images)
    for found in policy.engines:
        client = EngineClient(found, watch=watch)
        for line in client.run(
            "image", "ls", f"--filter=reference={ours}", "--format={{.Tag}}", timeout=ANSWER_S
        ).split():
            if line not in known:
                client.remove_image(f"{ours}:{posixpath.basename(line)}")
