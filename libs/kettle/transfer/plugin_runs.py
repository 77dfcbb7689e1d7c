"""
Running plugins, one after the other, each with all of its files; in a process that has already become the job's account.
"""

import importlib
import os
import select
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, NoReturn

import msgspec

from kettle.retry.deadline import Deadline
from kettle.transfer.checkpoint_checksums import differing, make_directories, with_manifest
from kettle.transfer.file_lists import shown
from kettle.transfer.hold_codes import Direction, Ran, ending_of, nobody
from kettle.transfer.plugin import Move, Moved, Order, Plugin, chosen
from kettle.transfer.plugin_protocol import ANSWER_BYTES, ProtocolError, Result, answer, question
from kettle.transfer.plugin_records import recorded
from kettle.transfer.url_cache import UrlCache
from kettle_wire.moved_files import FileRecord

_TAIL: Final = 500
_FAILED_BEFORE_EXEC: Final = 127


def carry_out(order: Order) -> Moved:
    """Move the files; the first failure ends it."""
    if not order.manifest:
        return _carried(order)
    try:
        if order.upload:
            return _carried(with_manifest(order))
        make_directories(order)
        moved = _carried(order)
        return moved if moved.ending is not None else msgspec.structs.replace(moved, ending=differing(order))
    except OSError as error:
        why = f"the checkpoint at {shown(order.place)}: {error.strerror} ({error.filename})"
        return Moved(ending=Direction(order.upload).ending(why, error.errno or 0))


def _carried(order: Order) -> Moved:
    direction, moved, tags = Direction(order.upload), 0, dict[str, str]()
    records: list[FileRecord] = []
    for plugin, moves in chosen(order.plugins, order.moves):
        if plugin is None:
            return Moved(bytes=moved, files=records, ending=nobody(direction, moves))
        ran = _several(order, plugin, moves) if plugin.several else _singly(order, plugin, moves)
        sizes = {move.path: _size(move.path) for move in moves}
        ending = ending_of(plugin, direction, moves, ran, sizes)
        records += recorded(plugin, moves, ran, upload=order.upload, failed=ending is not None)
        if ending is not None:
            return Moved(bytes=moved, files=records, ending=ending)
        moved += sum(size or 0 for size in sizes.values())
        if plugin.ours:
            tags |= {result.url: result.tag for result in ran.answer or () if result.tag}
    return Moved(bytes=moved, tags=tags, files=records)


def through_cache(order: Order, wanted: Sequence[Move], cache: UrlCache, become: Callable[[], None]) -> Moved:
    """
    Run plugins with a cache of files that were fetched before: a process that has become the job's account (`become`)
    moves the files, and this one, which has not, keeps those of the `wanted` that came.
    """
    names = {move.url: move.named for move in wanted}
    with cache.turn(names.values()) as ours:
        if not ours:
            return _as_another(order, become)
        known = {url: cache.known(name) for url, name in names.items()}
        moves = [msgspec.structs.replace(move, cached=known.get(move.url)) for move in order.moves]
        moved = _as_another(msgspec.structs.replace(order, moves=moves), become)
        if moved.ending is None:
            for move in wanted:
                if (tag := moved.tags.get(move.url)) is not None:
                    with suppress(OSError):  # there is no room: the job has its file all the same
                        cache.keep(move.named, tag, move.path)
    return moved


def _as_another(order: Order, become: Callable[[], None]) -> Moved:
    """Have a child carry it out.  Raises MsgspecError if it died."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(ours)
            become()
            with os.fdopen(theirs, "wb") as said:
                said.write(msgspec.msgpack.encode(carry_out(order)))
            os._exit(0)
        except Exception as error:  # noqa: BLE001 - the runner of this process
            sys.excepthook(type(error), error, error.__traceback__)
        finally:
            os._exit(1)
    os.close(theirs)
    with os.fdopen(ours, "rb") as hearing:
        said_all = hearing.read()
    os.waitpid(pid, 0)
    return msgspec.msgpack.decode(said_all, type=Moved)


def _several(order: Order, plugin: Plugin, moves: Sequence[Move]) -> Ran:
    asking, answering = (f"{order.scratch}/.transfer.{os.getpid()}.{end}" for end in ("ask", "answer"))
    try:
        _write(asking, question(moves))
        _write(answering, "")
        upload = ["-upload"] if order.upload else []
        ran = _run(order, plugin, ["-infile", asking, "-outfile", answering, *upload])
        return msgspec.structs.replace(ran, answer=_read(answering))
    finally:
        for path in (asking, answering):
            with suppress(FileNotFoundError):
                os.unlink(path)  # noqa: PTH108 - strings, as in the starter


def _singly(order: Order, plugin: Plugin, moves: Sequence[Move]) -> Ran:
    """A plugin of the older protocol is called with source and target; how it exits is all that it says."""
    ran, done = Ran(), list[Result]()
    for move in moves:
        ends = [move.path, move.url] if order.upload else [move.url, move.path]
        ran = _run(order, plugin, ends)
        done.append(Result(url=move.url, path=move.path, success=ran.status == 0))
        if ran.status or ran.failed or ran.late:
            break
    return msgspec.structs.replace(ran, answer=done)


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        file.write(text)


def _read(path: str) -> list[Result] | None:
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            data = file.read(ANSWER_BYTES + 1)
        return answer(data.decode()) if len(data) <= ANSWER_BYTES else None
    except (OSError, UnicodeDecodeError, ProtocolError):
        return None


def _size(path: str) -> int | None:
    try:
        about = os.stat(path)  # noqa: PTH116 - as above
    except OSError:
        return None
    return about.st_size if stat.S_ISREG(about.st_mode) else None


# -- processes ---------------------------------------------------------------------------------------------------------


def _run(order: Order, plugin: Plugin, arguments: Sequence[str]) -> Ran:
    """
    Run it once, in a session of its own; it is killed when it takes too long, with all that stayed in that session.
    """
    ours, theirs = os.pipe()
    try:
        start = _fork if plugin.ours else _spawn
        pid = start(plugin.path, arguments, order.environment, order.scratch, theirs)
    except OSError as error:
        os.close(ours)
        return Ran(failed=error.errno or 0)
    finally:
        os.close(theirs)
    try:
        in_time, said = _wait(pid, ours, order.lifetime)
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)  # not reaped: the number is still of this session
        _, status = os.waitpid(pid, 0)
        os.close(ours)
    return Ran(status=status, said=said) if in_time else Ran(late=order.lifetime, said=said)


def _spawn(
    path: str, arguments: Sequence[str], environment: Mapping[str, str], directory: str, errors: int
) -> int:
    process = subprocess.Popen(
        [path, *arguments],
        cwd=directory,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=errors,
        start_new_session=True,
    )
    process.returncode = 0  # `_run` waits for it
    return process.pid


def _fork(
    module: str, arguments: Sequence[str], environment: Mapping[str, str], directory: str, errors: int
) -> int:
    """One of ours needs no new interpreter, which the job's account might not even be able to read."""
    main: Callable[[Sequence[str]], int] = importlib.import_module(module).main
    pid = os.fork()
    if pid == 0:
        _become(main, arguments, environment, directory, errors)
    return pid


def _become(
    main: Callable[[Sequence[str]], int],
    arguments: Sequence[str],
    environment: Mapping[str, str],
    directory: str,
    errors: int,
) -> NoReturn:
    status = _FAILED_BEFORE_EXEC
    try:
        os.setsid()
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            # As every Python program has it: a broken connection is an error to tell.
            signal.signal(number, signal.SIG_IGN)
        os.chdir(directory)
        os.dup2(errors, 2)
        os.environ.clear()
        os.environ.update(environment)
        status = main(arguments)
    except BaseException as error:  # noqa: BLE001 - the runner of this process
        os.write(2, f"{type(error).__name__}: {error}".encode(errors="backslashreplace"))
        status = 1
    finally:
        sys.stderr.flush()
        os._exit(status)


def _wait(pid: int, errors: int, lifetime: float) -> tuple[bool, str]:
    """Whether it has ended in time, and the end of its output; it is not reaped."""
    deadline, tail = Deadline(lifetime), b""
    handle = os.pidfd_open(pid)
    os.set_blocking(errors, False)
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    poll.register(errors, select.POLLIN)
    try:
        while (left := deadline.left()) > 0:
            ready = {fd for fd, _ in poll.poll(min(left, 3600.0) * 1000)}
            if errors in ready:
                piece = os.read(errors, 1 << 16)
                tail = (tail + piece)[-_TAIL:]
                if not piece:
                    poll.unregister(errors)
            if handle in ready:  # a process that it left behind may still write, but nothing reads it
                return True, _text(tail)
    finally:
        os.close(handle)
    return False, _text(tail)


def _text(tail: bytes) -> str:
    return " ".join(tail.decode(errors="replace").split())
