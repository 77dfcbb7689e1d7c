#!/usr/bin/env python3
"""
The program of a job that works for a task queue.

It is sent with the job, together with `kettle_task_lane.py`, and stands alone: it takes any Python from 3.8 on of the machine or
container on which the job runs.  It gets tasks by way of the job's starter, as condor_chirp does, and holds no credential.

Tasks are run by *lanes*, processes that live on.  One may be killed by what it runs, and the worker goes on.
"""

from __future__ import annotations

import argparse
import base64
import collections
import json
import os
import queue
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from typing import Any, Deque, Iterator, NamedTuple

LANE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kettle_task_lane.py")
TASK = struct.Struct("<II")
"""Before each task on its way to a lane: its number, and how long it is."""
RESULT = struct.Struct("<IQQhBHI")
"""Of a lane: number, wall and processor time in microseconds, exit, whether output was cut, lengths of reason and output."""
FUNCTION = 0
"""The number under which a lane gets the function, and under which it says that it has loaded it."""
MOST = 5000
"""Tasks and results of one report."""
LARGEST = 400 * 1024
"""Bytes of the outputs of one report; a single one may have more."""
AHEAD_S = 0.5
"""Tasks for so long are fetched ahead, and results are reported so often."""
IN_LANE_S = 0.05
"""Tasks for so long are handed to a lane at once: those behind them are for the lane that is free first."""
MOST_IN_LANE = 500
GRACE_S = 2.0
"""So much longer than its limit a function or line may take before its lane is killed."""
LOAD_S = 600.0
"""So long a lane may take to begin and to load the function, if calls have a limit that is no longer."""
WAIT_S = 10.0
PATIENCE_S = 10.0
"""An answer is believed to be lost that has not come so long after it could: the report is sent again."""
NO_INTERPRETER = 78
"""Exit code of a worker whose lanes cannot be begun (EX_CONFIG); its job is held for it."""
LAST_S = 5.0
"""So long a worker that ends waits for each answer."""
NOT_NOW = (-10, -11, -17)
"""Answers of the starter that may be others in a while."""


class Refused(Exception):
    """The pool has nothing more to do with this worker; the message says why."""


class Unreachable(Exception):
    """The pool cannot be asked at the moment."""


class Done(NamedTuple):
    """A task that has ended."""

    lease: int
    number: int
    wall: int
    cpu: int
    exit: int
    cut: int
    reason: str
    output: bytes


def members(data: bytes, at: int, count: int) -> tuple[dict[str, Any], int]:
    """So many keys with their values, and where they end."""
    found: dict[str, Any] = {}
    for _ in range(count):
        key, at = unpacked(data, at)
        found[key], at = unpacked(data, at)
    return found, at


WIDTHS = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}
"""Of the types of MessagePack that an answer has: bytes of the number that follows."""


def unpacked(data: bytes, at: int = 0) -> tuple[Any, int]:
    """A value of MessagePack, and where it ends."""
    kind, at = data[at], at + 1
    if kind < 0x80:
        return kind, at
    if kind < 0x90:
        return members(data, at, kind & 0x0F)
    if 0xA0 <= kind < 0xC0:
        end = at + (kind & 0x1F)
        return data[at:end].decode(), end
    number, at = int.from_bytes(data[at : at + WIDTHS[kind]], "big"), at + WIDTHS[kind]
    if 0xCC <= kind <= 0xCF:
        return number, at
    found = data[at : at + number]
    return (found if kind <= 0xC6 else found.decode()), at + number


def asked(config: str, body: bytes, patience: float) -> dict[str, Any]:
    """What the pool answers to a report. Raises Refused, Unreachable."""
    try:
        with open(config) as file:
            host, port, cookie = file.read().split()
        with socket.create_connection((host.strip("<>"), int(port)), patience) as plug:
            head = "cookie %s\nkettle sessions - task_worker %d\n" % (cookie, len(body))
            plug.sendall(head.encode() + body)
            heard, length = plug.makefile("rb"), 0
            for _ in range(2):
                length = int(heard.readline() or NOT_NOW[0])
                if length in NOT_NOW:
                    raise Unreachable("the job's machine does not reach the pool")
                if length < 0:
                    raise Refused("the job's starter lets it ask nothing (%d)" % length)
            data = heard.read(length)
    except (OSError, ValueError) as error:
        raise Unreachable(str(error)) from error
    if len(data) != length:
        raise Unreachable("the job's starter has hung up")
    said = unpacked(data)[0]
    if said.get("code") in ("denied", "malformed", "too_large"):
        raise Refused(said.get("reason", ""))
    if said.get("code"):
        raise Unreachable(said.get("reason", ""))
    orders: dict[str, Any] = json.loads(said["body"])
    return orders


class Asking:
    """Asks in a thread, so that lanes are served meanwhile; one question at a time."""

    def __init__(self, config: str) -> None:
        self.config = config
        self.questions: queue.Queue[tuple[bytes, float]] = queue.Queue()
        self.answers: queue.Queue[dict[str, Any] | Exception] = queue.Queue()
        self.bell, self.rings = socket.socketpair()
        threading.Thread(target=self.run, daemon=True).start()

    def run(self) -> None:
        """Answer one question after the other."""
        while True:
            body, patience = self.questions.get()
            try:
                self.answers.put(asked(self.config, body, patience))
            except (Refused, Unreachable) as error:
                self.answers.put(error)
            self.rings.send(b"!")


class Lane:
    """A process that runs tasks."""

    def __init__(self, plan: dict[str, Any], python: str, function: bytes) -> None:
        self.socket, other = socket.socketpair()
        words = [python, LANE, str(other.fileno()), json.dumps(plan)]
        self.process = subprocess.Popen(
            words, pass_fds=[other.fileno()], stdin=subprocess.DEVNULL, start_new_session=True
        )
        other.close()
        self.socket.setblocking(False)
        self.out = bytearray()
        self.heard = bytearray()
        self.tasks: Deque[tuple[int, int, bytes]] = collections.deque()
        self.loaded = not function
        """It runs tasks: it has begun, and has loaded the function if there is one."""
        self.since = time.monotonic()
        """When the first of its tasks began, or may have; while it loads the function, when it was begun itself."""
        if function:
            self.out += TASK.pack(FUNCTION, len(function)) + function

    def give(self, task: tuple[int, int, bytes]) -> None:
        """One more."""
        if not self.tasks and self.loaded:
            self.since = time.monotonic()
        self.tasks.append(task)
        self.out += TASK.pack(task[1], len(task[2])) + task[2]

    def flush(self) -> None:
        """Send what the process takes now."""
        try:
            del self.out[: self.socket.send(self.out)]
        except BlockingIOError:
            pass
        except OSError:
            self.out.clear()  # that it has ended is seen where it is heard

    def results(self) -> list[Done] | None:
        """What it has done; None: it has ended."""
        try:
            data = self.socket.recv(1 << 18)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            return None
        self.heard += data
        found: list[Done] = []
        at = 0
        while at + RESULT.size <= len(self.heard):
            number, wall, cpu, code, cut, why, out = RESULT.unpack_from(self.heard, at)
            begin, middle = at + RESULT.size, at + RESULT.size + why
            if middle + out > len(self.heard):
                break
            at = middle + out
            if number == FUNCTION:
                self.loaded, self.since = True, time.monotonic()
                continue
            lease = self.tasks.popleft()[0]
            reason = self.heard[begin:middle].decode("utf-8", "replace") if why else ""
            found.append(Done(lease, number, wall, cpu, code, cut, reason, bytes(self.heard[middle:at])))
        del self.heard[:at]
        if found:
            self.since = time.monotonic()
        return found

    def end(self) -> int:
        """End it, and what it runs; how it has ended."""
        for number, patience in ((signal.SIGTERM, 1.0), (signal.SIGKILL, None)):
            try:
                os.killpg(self.process.pid, number)
                self.process.wait(patience)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                pass
        self.socket.close()
        return self.process.wait()


class Worker:
    """Fetches tasks, hands them to lanes, reports what became of them."""

    def __init__(self, config: str, lanes: int, python: str, idle: float) -> None:
        self.asking = Asking(config)
        self.count = lanes
        self.python = python
        self.idle = idle
        self.plan: dict[str, Any] = {}
        self.function = b""
        self.lanes: list[Lane] = []
        self.waiting: Deque[tuple[int, int, bytes]] = collections.deque()
        self.left: dict[int, int] = {}
        """Of each lease: tasks that were not reported yet."""
        self.done: list[Done] = []
        self.reporting: list[Done] | None = None
        """What a report says that is under way; None: there is none."""
        self.number = 0
        self.mean = 0.0
        """Seconds that a task takes, as the last ones did."""
        self.asked = self.heard = self.busy = time.monotonic()
        self.pause = 0.0
        self.lease_s = 60.0
        self.vacated = False

    # -- what is asked -----------------------------------------------------------------------------------------------

    def ask(self, wait: float, want: int) -> None:
        """Report what is done, and ask for more."""
        self.asking.questions.put((self.report(wait, want), wait + PATIENCE_S))

    def report(self, wait: float, want: int) -> bytes:
        """What is done, as much of it as one report has."""
        count = size = 0
        for each in self.done:
            count, size = count + 1, size + len(each.output)
            if count >= MOST or size >= LARGEST:
                break
        told, self.done = self.done[:count], self.done[count:]
        of_leases: dict[int, list[Done]] = {}
        for each in told:
            of_leases.setdefault(each.lease, []).append(each)
        holds = (
            []
            if self.vacated
            else [lease for lease, left in self.left.items() if left > len(of_leases.get(lease, ()))]
        )
        self.number += 1
        report = {
            "number": self.number,
            "holds": holds,
            "results": [{"lease": lease, "results": columns(each)} for lease, each in of_leases.items()],
            "want": want,
            "wait": wait,
            "function": not self.function and (not self.plan or self.plan.get("kind") == "functions"),
        }
        self.reporting, self.asked = told, time.monotonic()
        return json.dumps(report).encode()

    def answered(self) -> bool:
        """Take in what was answered; whether all is over."""
        self.asking.bell.recv(1)
        said, told = self.asking.answers.get(), self.reporting or []
        self.reporting = None
        if isinstance(said, Unreachable):
            self.done = told + self.done
            self.pause = min(5.0, self.pause * 2 or 0.1)
            return False
        if isinstance(said, Exception):
            raise said
        self.pause, self.heard, self.lease_s = 0.0, self.asked, said["lease_s"]
        for each in told:
            self.left[each.lease] = self.left.get(each.lease, 0) - 1
        self.left = {lease: left for lease, left in self.left.items() if left > 0}
        self.plan = said["plan"]
        self.function = base64.b64decode(said["function"]) or self.function
        for lease in said["leases"]:
            texts = [base64.b64decode(each) for each in lease["texts"]]
            numbers = [number for first, last in lease["tasks"] for number in range(first, last + 1)]
            self.left[lease["lease"]] = len(numbers)
            self.waiting.extend((lease["lease"], *each) for each in zip(numbers, texts))
        return bool(said["over"])

    def target(self) -> int:
        """As many tasks as are to be here."""
        ahead = AHEAD_S / self.mean if self.mean else 16.0
        return int(min(MOST, max(2.0, 2 * ahead) * self.count))

    def ask_if_due(self, now: float) -> None:
        """Ask when something is missing, is to be reported, or the leases are to be renewed."""
        since = now - self.asked
        if self.reporting is not None or since < self.pause:
            return
        here = len(self.waiting) + sum(len(each.tasks) for each in self.lanes)
        if not here and not self.left_after_reports():
            self.ask(0.0 if self.done else WAIT_S, self.target())
        elif since >= AHEAD_S and (self.done or here < self.target() // 2):
            self.ask(0.0, max(0, self.target() - here))
        elif here < self.target() // 4 and since >= IN_LANE_S:
            self.ask(0.0, self.target() - here)
        elif since > self.lease_s / 4:
            self.ask(0.0, 0)

    def left_after_reports(self) -> int:
        """Tasks of leases that are neither done nor reported."""
        return sum(self.left.values()) - len(self.done)

    # -- lanes -------------------------------------------------------------------------------------------------------

    def feed(self) -> None:
        """Hand tasks to lanes, so many that none waits for its next one."""
        if self.waiting and (self.plan.get("kind") != "functions" or self.function):
            while len(self.lanes) < self.count:
                self.lanes.append(Lane(self.plan, self.python, self.function))
        most = int(min(MOST_IN_LANE, IN_LANE_S / self.mean)) + 1 if self.mean else 1
        while self.waiting and (free := [each for each in self.lanes if len(each.tasks) < most]):
            for lane, _ in zip(free, range(len(self.waiting))):
                lane.give(self.waiting.popleft())
        for lane in self.lanes:
            if lane.out:
                lane.flush()

    def hear(self, lane: Lane) -> None:
        """Take what a lane has done; one that has ended is the end of the task that it ran."""
        found = lane.results()
        if found is None:
            self.lose(lane, "")
            return
        if found:
            self.done += found
            wall = sum(each.wall for each in found) / len(found) / 1e6
            self.mean = max(1e-6, (self.mean + wall) / 2 if self.mean else wall)

    def lose(self, lane: Lane, why: str) -> None:
        """
        A lane has ended, or is ended: the first of its tasks has failed, and the others are for another one.
        """
        code = lane.end()
        self.lanes.remove(lane)
        if lane.tasks:
            lease, number, _ = lane.tasks.popleft()
            how = "signal %d" % -code if code < 0 else "exit code %d" % code
            wall = int((time.monotonic() - lane.since) * 1e6) if lane.loaded else 0
            what = (
                "it has ended the process in which it ran"
                if lane.loaded
                else "loading the function ended its process"
            )
            said = why or "%s (%s)" % (what, how)
            self.done.append(Done(lease, number, wall, 0, code or 1, 0, said, b""))
            self.waiting.extendleft(reversed(lane.tasks))

    def end_late_ones(self, now: float) -> None:
        """
        End lanes whose task takes longer than it may; those of commands see to that themselves.

        Where calls have a limit, loading the function has one, too: it is no call, and may take longer, but not without end.
        """
        wall = self.plan.get("wall", 0.0)
        if not wall or self.plan.get("kind", "commands") == "commands":
            return
        for lane in [each for each in self.lanes if each.tasks]:
            limit = wall if lane.loaded else max(wall, LOAD_S)
            if now - lane.since > limit + GRACE_S:
                why = (
                    "it was killed after %g s, its time limit"
                    if lane.loaded
                    else "the function was not loaded in %g s"
                )
                self.lose(lane, why % limit)

    def drop(self) -> None:
        """Forget all tasks, and end what runs: they are not ours any more, or soon will not be."""
        for lane in self.lanes:
            lane.end()
        self.lanes.clear()
        self.waiting.clear()
        self.left.clear()

    # -- all of it ---------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Work until the queue is over, nothing has come for long, or the job is vacated. Raises Refused."""
        while True:
            now = time.monotonic()
            if self.left and now - self.heard > self.lease_s * 0.75:
                self.drop()
                self.done.clear()
            if self.left or self.done:
                self.busy = now
            elif now - self.busy > self.idle and self.reporting is None:
                break
            self.end_late_ones(now)
            self.feed()
            self.ask_if_due(now)
            if self.once():
                self.drop()
                return
            if self.vacated:
                break
        self.give_back()

    def once(self) -> bool:
        """Wait for something, and take it in; whether all is over."""
        heard = [self.asking.bell, *(each.socket for each in self.lanes)]
        told = [each.socket for each in self.lanes if each.out]
        ready, room, _ = select.select(heard, told, [], 0.05 if self.reporting is None else 0.5)
        over = self.asking.bell in ready and self.answered()
        for lane in list(self.lanes):
            if lane.socket in room:
                lane.flush()
            if lane.socket in ready:
                self.hear(lane)
        return over

    def give_back(self) -> None:
        """
        Report the last results, and that nothing else will come; an answer that is under way does not matter any more.
        """
        self.vacated = True
        for lane in list(self.lanes):
            self.done += lane.results() or []
        self.done = (self.reporting or []) + self.done
        self.drop()
        try:
            asked(self.asking.config, self.report(0.0, 0), LAST_S)
            while self.done:
                asked(self.asking.config, self.report(0.0, 0), LAST_S)
        except (Refused, Unreachable):
            pass  # its leases end by themselves


def columns(done: list[Done]) -> dict[str, Any]:
    """Results of one lease, as they are reported."""
    done.sort(key=lambda each: each.number)
    return {
        "tasks": list(ranges(done)),
        "wall_us": [each.wall for each in done],
        "cpu_us": [each.cpu for each in done],
        "exits": [[place, each.exit, each.reason] for place, each in enumerate(done) if each.exit],
        "outputs": [base64.b64encode(each.output).decode() for each in done]
        if any(each.output for each in done)
        else [],
        "cut": [place for place, each in enumerate(done) if each.cut],
    }


def ranges(done: list[Done]) -> Iterator[list[int]]:
    """The numbers of tasks, as ranges."""
    first = last = 0
    for each in done:
        if first and each.number == last + 1:
            last = each.number
            continue
        if first:
            yield [first, last]
        first = last = each.number
    if first:
        yield [first, last]


def no_interpreter(python: str) -> str:
    """
    Why a program cannot be the interpreter of lanes; it is asked before a task is here that would seem to be the cause.
    """
    try:
        status = subprocess.call([python, LANE], stdin=subprocess.DEVNULL)
    except OSError as error:
        return str(error)
    return "%s has ended with %d when it loaded %s" % (python, status, LANE) if status else ""


def main() -> int:
    """Work; the job's exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lanes", type=int, default=1, help="tasks that run at once")
    parser.add_argument(
        "--python", default=sys.executable, help="of the lanes: it has the modules of functions"
    )
    parser.add_argument("--idle", type=float, default=60.0, help="seconds without tasks after which it ends")
    options = parser.parse_args()
    if options.python != sys.executable and (trouble := no_interpreter(options.python)):
        sys.stderr.write("kettle_task_worker: %s\n" % trouble)
        return NO_INTERPRETER
    worker = Worker(os.environ["_CONDOR_CHIRP_CONFIG"], options.lanes, options.python, options.idle)

    def vacate(_number: int, _frame: object) -> None:
        worker.vacated = True

    signal.signal(signal.SIGTERM, vacate)
    try:
        worker.run()
    except Refused as error:
        worker.drop()
        sys.stderr.write("kettle_task_worker: %s\n" % error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
