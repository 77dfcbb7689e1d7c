"""
Requests to an engine for containers, by its own command.

No value of a job becomes an argument here before it was checked: values that would become an option, or several values,
are refused.  Neither a job's environment nor files that it may not read are passed to an engine.
"""

import os
import re
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import IO, Any, Final

import msgspec

from kettle.execution.containers.policy import ContainerError, FoundRuntime, machine_error
from kettle.execution.containers.runtimes.runtime import MARK
from kettle.retry.deadline import Deadline

_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PASSED: Final = re.compile(
    r"(?i)(HOME|TMPDIR|XDG_RUNTIME_DIR|DOCKER_.*|CONTAINERS?_.*|STORAGE_.*|(http|https|no|all)_proxy)"
)
"""What of our environment an engine's command may need."""
_GONE: Final = ("no such container", "no such object", "no such image", "image not known")
"""And nothing wider: of a socket or a file that is not there, too, engines say that it does not exist."""
ANSWER_S: Final = 30.0
"""For a question, or an order that takes no work."""
REMOVING_S: Final = 15.0
_LOOKING_S: Final = 0.5
_FAREWELL_S: Final = 1.0
_PAUSE_S: Final = 0.05
_SAID_CHARS: Final = 600


class ImageFacts(msgspec.Struct, frozen=True):
    """An image of an engine; `run` is as `config` in its description."""

    id: str
    size: int
    architecture: str
    run: dict[str, Any]


class EngineError(Exception):
    """The command failed; the message is its last output."""


class SilentError(EngineError):
    """The command did not end in time: another attempt takes as long again."""


class StoppedError(SilentError):
    """The answer is no longer needed."""


class _Inspected(msgspec.Struct, frozen=True, rename="pascal"):
    Id: str
    Size: int = 0
    Architecture: str = ""
    Config: dict[str, Any] | None = None


class EngineClient:
    """
    The command of an engine; `mark` is the sandbox for which it works, so that its processes are found.

    `watch` is called repeatedly while a command works, and ends it by raising an exception.
    """

    def __init__(self, found: FoundRuntime, mark: str = "", watch: Callable[[], None] = lambda: None) -> None:
        self.name = found.name
        self._words = [found.path, *found.options]
        self._mark = mark
        self._watch = watch

    def run(
        self,
        *words: str,
        timeout: float,
        stdin: IO[bytes] | None = None,
        options: Sequence[str] = (),
        watch: Callable[[], None] = lambda: None,
    ) -> str:
        """
        What the command writes; `options` go before its own words, and `watch` beside the client's own.

        Raises:
            EngineError: it failed, or took longer than `timeout` seconds.
            OSError: it could not be executed.
        """
        self._watch()
        process = subprocess.Popen(
            [*self._words, *options, *words],
            stdin=stdin if stdin is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self._environment(),
            cwd="/",
            start_new_session=True,
            preexec_fn=_unlimit if _limited() else None,  # noqa: PLW1509 - what is limited has one thread
        )
        with ExitStack() as pipes:
            for pipe in (process.stdout, process.stderr):
                assert pipe is not None, "as asked for"
                pipes.enter_context(pipe)
            try:
                out, err = _finished(process, timeout, watch, self._watch)
            except BaseException:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # a session of its own: what it has started, too
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_FAREWELL_S)  # one that hangs in the kernel is not waited for
                raise
        if process.returncode:
            raise EngineError(_last(err) or f"it ended with {process.returncode} and did not say why")
        return out.decode(errors="replace").strip()

    def image(self, reference: str) -> ImageFacts | None:
        """
        An image that the engine has; None: it has none of that name.

        Raises:
            ContainerError: it cannot be asked.
        """
        try:
            said = self.run("image", "inspect", reference, timeout=ANSWER_S)
            (found,) = msgspec.json.decode(said, type=list[_Inspected])
        except EngineError as error:
            if _says(error, *_GONE):
                return None
            raise machine_error(f"{self.name} cannot be asked for an image: {error}") from error
        except (msgspec.MsgspecError, ValueError) as error:
            raise machine_error(f"{self.name} describes an image in an unknown way: {error}") from error
        return ImageFacts(found.Id, found.Size, found.Architecture, found.Config or {})

    def remove_image(self, reference: str) -> bool:
        """
        Remove an image; returns whether it no longer exists; one that a container uses stays.

        Raises:
            SilentError: the engine does not answer.
        """
        try:
            self.run("image", "rm", reference, timeout=ANSWER_S)
        except SilentError:
            raise
        except EngineError as error:
            return _says(error, *_GONE)
        return True

    def remove(self, container: str, *, patience: float = REMOVING_S) -> bool:
        """
        Remove a container, with all its data in the engine; returns whether it no longer exists.  Blocks for `patience`
        seconds at most.
        """
        deadline = Deadline(patience)
        while True:
            try:
                left = max(1.0, deadline.left())
                self.run("rm", "--force", "--volumes", container, timeout=left)
            except EngineError as error:
                if _says(error, *_GONE):
                    return True
                if not _says(error, "in progress") or deadline.passed:
                    return False
                time.sleep(_PAUSE_S)  # and there is no notification when that is done
            else:
                return True

    def free_bytes(self) -> Callable[[], int]:
        """A function that returns how much room there is for images. Raises EngineError, OSError."""
        asked = "{{.DockerRootDir}}" if self.name == "docker" else "{{.Store.GraphRoot}}"
        root = self.run("info", f"--format={asked}", timeout=ANSWER_S)

        def free() -> int:
            about = os.statvfs(root)
            return about.f_bavail * about.f_frsize

        return free

    def containers(self, label: str) -> list[str]:
        """The names of all containers with a label, whether or not they run. Raises EngineError."""
        said = self.run(
            "ps", "--all", "--filter", f"label={label}", "--format", "{{.Names}}", timeout=ANSWER_S
        )
        return said.split()

    def _environment(self) -> dict[str, str]:
        passed = {name: value for name, value in os.environ.items() if _PASSED.fullmatch(name)}
        return {"HOME": "/", **passed, "PATH": _PATH, MARK: self._mark, "LC_ALL": "C.UTF-8"}


def discard_image(engines: Sequence[FoundRuntime], name: str, reference: str) -> bool:
    """
    Make the engine of that name remove an image; returns whether it no longer exists, or belongs to an engine that is
    not used any more.

    Raises:
        SilentError: the engine does not answer.
    """
    for found in engines:
        if found.name == name:
            return EngineClient(found).remove_image(reference)
    return True


def _finished(
    process: subprocess.Popen[bytes], timeout: float, *watches: Callable[[], None]
) -> tuple[bytes, bytes]:
    deadline = Deadline(timeout)
    while True:
        left = deadline.left()
        try:
            return process.communicate(timeout=min(left, _LOOKING_S))
        except subprocess.TimeoutExpired as error:
            if left <= _LOOKING_S:
                raise SilentError(f"it did not answer within {timeout:g} s") from error
        for watch in watches:
            watch()


def _limited() -> bool:
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    return soft != hard


def _unlimit() -> None:
    """
    Raise the memory limit: unpacking untrusted archives has only so much memory, but an engine's command reserves more
    than it uses.
    """
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def plain(word: str, what: str) -> str:
    """
    A value that stays one value as a part of an engine's option.

    Raises:
        ContainerError: it would not.
    """
    if any(char in word for char in ',"\0\r\n') or word.startswith("-"):
        raise ContainerError(f"{what} {word!r} has a character that docker and podman do not take there")
    return word


def _says(error: EngineError, *words: str) -> bool:
    said = str(error).lower()
    return any(word in said for word in words)


def _last(said: bytes) -> str:
    lines = said.decode(errors="replace").strip().splitlines()
    return " ".join(lines[-2:]).removeprefix("Error: ")[:_SAID_CHARS] if lines else ""
