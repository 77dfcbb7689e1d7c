#!/usr/bin/env python3
"""
A lane of a worker of a task queue: it lives on, and runs one task after the other.

It is sent with the job, beside `kettle_task_worker.py`, and stands alone: it takes any Python from 3.8 on, which may be another one
than that of the worker.  Tasks come over a socket, and each result goes back before the next task begins: so the worker that started this
process knows which task ended it, if one does.
"""

from __future__ import annotations

import fcntl
import json
import os
import pickle
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from typing import Any, BinaryIO, Callable, NamedTuple

TASK = struct.Struct("<II")
"""Before each task: its number, and how long it is."""
RESULT = struct.Struct("<IQQhBHI")
"""Number, wall and processor time in microseconds, exit, whether output was cut, lengths of reason and output."""
FUNCTION = 0
"""The number under which the function comes, and under which it is said that it has been loaded."""
REASON = 1000
END_S = 5.0
"""So long a program may take to end that has closed its output."""
PLAIN = re.compile(r"[A-Za-z0-9_./+:,@%-]+( +[A-Za-z0-9_./+:,@%=-]+)*")
"""A line that no shell reads otherwise than as its words."""
BUILTIN = frozenset(
    ["echo", "printf", "test", "kill", "pwd", "umask", "ulimit", "wait", "read", "exec", "cd", "exit"]
)
"""What a shell does itself, some of it a little differently from the program of that name."""
SHELL = "/bin/sh"
SET_CHILD_SUBREAPER = 36
"""Of prctl."""


class Outcome(NamedTuple):
    """How a task has ended."""

    wall: int
    cpu: int
    exit: int = 0
    reason: str = ""
    output: bytes = b""


def plan_of(text: str) -> dict[str, Any]:
    """What the tasks are, as the pool says it."""
    found: dict[str, Any] = json.loads(text)
    return found


class Commands:
    """Lines for the shell."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.wall = float(plan.get("wall", 0.0))
        self.most = int(plan.get("output", 1024))
        self.nothing = os.open(os.devnull, os.O_RDONLY)
        self.adopts = adopts_orphans()
        self.file = empty_file()
        self.programs: dict[str, str | None] = {}
        self.child = 0
        self.late = False
        signal.signal(signal.SIGALRM, self.on_alarm)
        signal.signal(signal.SIGTERM, self.on_end)

    def on_alarm(self, _number: int, _frame: object) -> None:
        """The time of a task is over."""
        self.late = True
        self.kill()

    def on_end(self, _number: int, _frame: object) -> None:
        """The worker ends this lane, and what it runs with it."""
        self.kill()
        os._exit(143)

    def kill(self) -> None:
        """Kill the processes of the task that runs."""
        if self.child:
            try:
                os.killpg(self.child, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def words(self, line: str) -> list[str]:
        """What is executed: the program itself, where a shell would do nothing else."""
        if PLAIN.fullmatch(line):
            words = line.split()
            name = words[0]
            if name not in self.programs:
                self.programs[name] = None if name in BUILTIN else shutil.which(name)
            program = self.programs[name]
            if program is not None:
                return [program, *words]
        return [SHELL, SHELL, "-c", line]

    def run(self, text: bytes) -> Outcome:
        """Run one."""
        program, *words = self.words(os.fsdecode(text))
        self.late, begun = False, time.perf_counter_ns()
        actions = [
            (os.POSIX_SPAWN_DUP2, self.nothing, 0),
            (os.POSIX_SPAWN_DUP2, self.file.fileno(), 1),
            (os.POSIX_SPAWN_DUP2, self.file.fileno(), 2),
        ]
        signals = [signal.SIGALRM, signal.SIGTERM, signal.SIGPIPE]
        try:
            self.child = os.posix_spawn(
                program, words, os.environ, file_actions=actions, setpgroup=0, setsigdef=signals
            )
        except OSError as error:
            return Outcome(micro(begun), 0, 126, "%s cannot be started: %s" % (program, error))
        if self.wall:
            signal.setitimer(signal.ITIMER_REAL, self.wall)
        while True:  # with the task those that it has left alone, which are ours to wait for
            pid, status, usage = os.wait4(-1 if self.adopts else self.child, 0)
            if pid == self.child:
                break
        if self.wall:
            signal.setitimer(signal.ITIMER_REAL, 0)
        wall = micro(begun)
        self.kill()  # what it has left running
        self.child = 0
        code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        reason = "it was killed after %g s, its time limit" % self.wall if self.late else ""
        return Outcome(wall, int((usage.ru_utime + usage.ru_stime) * 1e6), code, reason, self.output())

    def output(self) -> bytes:
        """What it printed: one byte more than is kept says that there was more."""
        shared, printed = self.has_left_some(), self.file.fileno()
        size = os.fstat(printed).st_size
        found = os.pread(printed, self.most + 1, 0) if size else b""
        if shared:
            self.file.close()
            self.file = empty_file()
        elif size:
            os.ftruncate(printed, 0)
        return found

    def has_left_some(self) -> bool:
        """
        Whether a process of the task may go on, outside of its group: what it prints is not of the next task.

        A file for each task would be slower; orphans are children of this process, and one call says that there are none.
        """
        try:
            while self.adopts and os.waitpid(-1, os.WNOHANG)[0]:
                pass  # one that has ended
        except ChildProcessError:
            return False
        return True


def empty_file() -> BinaryIO:
    """A file without a name; each write is at its end, wherever the last task stopped."""
    file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - it is closed when the next one is taken
    fcntl.fcntl(file.fileno(), fcntl.F_SETFL, os.O_APPEND)
    return file


def adopts_orphans() -> bool:
    """Become the parent of what is left by processes that this one begins; whether that can be."""
    try:
        from ctypes import CDLL

        status: int = CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        return status == 0
    except (ImportError, OSError, AttributeError):
        return False  # a Python without ctypes, or no Linux


class Functions:
    """Calls of one function."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.most = int(plan.get("output", 1024))
        self.function: Callable[..., object] | None = None
        self.broken = ""
        sys.path.insert(0, os.getcwd())

    def take(self, pickled: bytes) -> None:
        """Have the function; that it cannot be had is the reason of each task."""
        try:
            self.function = pickle.loads(pickled)
        except BaseException as error:
            self.broken = "the function cannot be had here: %s: %s" % (type(error).__name__, error)

    def run(self, text: bytes) -> Outcome:
        """Call it once."""
        begun, cpu = time.perf_counter_ns(), time.process_time_ns()
        if self.function is None:
            return Outcome(0, 0, 1, self.broken or "the function has not come")
        try:
            output = pickle.dumps(self.function(*pickle.loads(text)), protocol=4)
        except BaseException as error:
            said = "%s: %s" % (type(error).__name__, error)
            return Outcome(
                micro(begun), micro(cpu, time.process_time_ns), 1, said, traceback.format_exc().encode()
            )
        used = Outcome(micro(begun), micro(cpu, time.process_time_ns), 0, "", output)
        if len(output) > self.most:
            too_long = "it returned %d bytes, of which the queue keeps %d" % (len(output), self.most)
            return used._replace(exit=1, reason=too_long, output=b"")
        return used


class Lines:
    """Lines for a program that lives on and answers each with a line."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.words: list[str] = plan["program"]
        self.program: subprocess.Popen[bytes] | None = None
        self.clock = -1

    def start(self) -> subprocess.Popen[bytes]:
        """Start the program, if it does not run."""
        if self.program is None:
            self.program = subprocess.Popen(self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self.clock = os.open("/proc/%d/schedstat" % self.program.pid, os.O_RDONLY)
        return self.program

    def run(self, text: bytes) -> Outcome:
        """Have one answered."""
        begun = time.perf_counter_ns()
        try:
            program = self.start()
        except OSError as error:
            return Outcome(micro(begun), 0, 127, "the program cannot be started: %s" % error)
        before, line = self.used(), b""
        told, heard = program.stdin, program.stdout
        assert told is not None, "it is a pipe"
        assert heard is not None, "it is a pipe"
        try:
            told.write(text + b"\n")
            told.flush()
            line = heard.readline()
        except OSError:
            pass  # it does not read any more: how it ended is said below
        if line.endswith(b"\n"):
            return Outcome(micro(begun), max(0, self.used() - before), 0, "", line[:-1])
        heard.close()  # one that has closed its output, and goes on, is no program that answers
        try:
            told.close()
        except OSError:
            pass  # it has not read all of the line
        try:
            code = program.wait(END_S)
        except subprocess.TimeoutExpired:
            program.kill()
            code = program.wait()
        os.close(self.clock)
        self.program = None
        return Outcome(micro(begun), 0, code or 1, "the program has ended without an answer", line)

    def used(self) -> int:
        """Microseconds that the program's first thread has run."""
        return int(os.pread(self.clock, 64, 0).split()[0]) // 1000


def micro(since: int, clock: Callable[[], int] = time.perf_counter_ns) -> int:
    """Microseconds since then."""
    return (clock() - since) // 1000


def main(descriptor: int, plan: dict[str, Any]) -> None:
    """Run what comes, until nothing more does."""
    runner: Any = {"commands": Commands, "functions": Functions, "lines": Lines}[
        plan.get("kind", "commands")
    ](plan)
    most = int(plan.get("output", 1024))
    tasks: BinaryIO = os.fdopen(descriptor, "rb", buffering=1 << 18, closefd=False)
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    while True:
        head = tasks.read(TASK.size)
        if len(head) < TASK.size:
            return
        number, length = TASK.unpack(head)
        text = tasks.read(length)
        if number == FUNCTION:
            runner.take(text)
            send(descriptor, RESULT.pack(FUNCTION, 0, 0, 0, 0, 0, 0))
            continue
        wall, cpu, code, reason, output = runner.run(text)
        why, cut = reason.encode("utf-8", "replace")[:REASON], len(output) > most
        data = RESULT.pack(number, wall, cpu, code, cut, len(why), min(len(output), most))
        send(descriptor, data + why + (output[:most] if cut else output))


def send(descriptor: int, data: bytes) -> None:
    """Send all of it."""
    while data:
        data = data[os.write(descriptor, data) :]


if __name__ == "__main__" and len(sys.argv) > 1:  # without arguments it only loads: can this Python?
    main(int(sys.argv[1]), plan_of(sys.argv[2]))
