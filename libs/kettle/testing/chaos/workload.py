"""People who use the pool while it is being broken, and a book of what the pool has promised them."""

import asyncio
import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import msgspec

from kettle.client import Client, ClientError
from kettle.testing.chaos.evidence import Evidence
from kettle.testing.chaos.liveness import Pulse
from kettle_wire.commands.schedd import Action, JobOutcome, Select
from kettle_wire.jobs import JobId

_JOBS: Final = (10, 40)
_LARGE_JOBS: Final = (7, 10)
"""Jobs of several nodes that are submitted together: enough to hold some and remove others."""
_WITH_NODES: Final = 0.4
"""The share of submissions that are of such jobs."""
_WITH_TOKEN: Final = 4
"""Each of so many submissions is of jobs that want a token, where there is an iam."""
_LONG: Final = (3.0, 15.0)
_LOOK_S: Final = 0.5


class Submission(msgspec.Struct, kw_only=True):
    """Something that was submitted, and what we were told."""

    batch: str
    count: int
    cluster: int = 0
    """0: nobody has told us that it is recorded; it may be all the same."""
    refused: str = ""
    """The sentence with which it was refused, or in which it is said that nobody answered."""


class Command(msgspec.Struct, kw_only=True):
    """Something that was asked for, and what we were told."""

    action: Action
    jobs: list[JobId]
    outcomes: list[JobOutcome] = []
    answered: bool = False
    refused: str = ""


class PromiseRecord(msgspec.Struct):
    """Everything that was asked of the pool."""

    submissions: list[Submission] = []
    commands: list[Command] = []

    @property
    def acknowledged(self) -> int:
        """Jobs of which we were told that they are recorded."""
        return sum(each.count for each in self.submissions if each.cluster)

    @property
    def unanswered(self) -> int:
        """Submissions and commands that came to nothing, as far as we were told."""
        return sum(not each.cluster for each in self.submissions) + sum(
            not each.answered for each in self.commands
        )


class Workload:
    """Submitters, who go on until they are stopped."""

    def __init__(
        self,
        pulse: Pulse,
        evidence: Evidence,
        *,
        seed: int,
        depth: int,
        jobs: int = 0,
        nodes: int = 1,
        submitters: int = 3,
        tokens: bool = False,
    ) -> None:
        """
        `depth`: so many jobs are kept in the queue; `jobs`: the most that are submitted, 0 for no limit; `nodes`: the most that one
        has; `tokens`: some want a token of the pool's iam.
        """
        self.ledger = PromiseRecord()
        self._pulse = pulse
        self._evidence = evidence
        self._seed = seed
        self._depth = depth
        self._jobs = jobs
        self._nodes = nodes
        self._submitters = submitters
        self._tokens = tokens
        self._stopping = asyncio.Event()
        self._asked = 0

    @asynccontextmanager
    async def running(self, clients: Sequence[Client]) -> AsyncGenerator[None]:
        """Work until the end of the context; then every command that was begun has its answer."""
        async with asyncio.TaskGroup() as group:
            for number in range(self._submitters):
                group.create_task(self._person(number, clients[number % len(clients)]))
            try:
                yield
            finally:
                self._stopping.set()

    async def _person(self, number: int, client: Client) -> None:
        chance = random.Random(self._seed * 1000 + number)  # noqa: S311 - to be repeated, not to be secret
        turn = 0
        while not self._stopping.is_set():
            if not self._wanted():
                await self._pause(_LOOK_S)
                continue
            turn += 1
            submission = await self._submit(client, f"p{number}b{turn}", chance)
            if submission.cluster:
                await self._meddle(client, submission, chance)

    def _wanted(self) -> bool:
        left = not self._jobs or self._asked < self._jobs
        return left and self._pulse.queued < self._depth

    async def _submit(self, client: Client, batch: str, chance: random.Random) -> Submission:
        nodes = chance.randint(2, self._nodes) if self._nodes > 1 and chance.random() < _WITH_NODES else 1
        seconds = [_lifetime(chance) for _ in range(chance.randint(*(_JOBS if nodes == 1 else _LARGE_JOBS)))]
        self._asked += len(seconds)
        submission = Submission(batch=batch, count=len(seconds))
        self.ledger.submissions.append(submission)
        try:
            token = self._tokens and nodes == 1 and not len(self.ledger.submissions) % _WITH_TOKEN
            description = self._evidence.description(batch, seconds, nodes=nodes, token=token)
            told = await client.submit(description, cwd=self._evidence.work)
        except ClientError as error:
            submission.refused = str(error)
        else:
            submission.cluster = told.cluster
        return submission

    async def _meddle(self, client: Client, submission: Submission, chance: random.Random) -> None:
        """Hold some of the jobs and release them again, remove others."""
        procs = chance.sample(range(submission.count), submission.count)
        jobs = [JobId(submission.cluster, proc) for proc in procs]
        held, removed = jobs[: chance.randint(0, 4)], jobs[4 : 4 + chance.randint(0, 2)]
        if held:
            await self.act(client, "hold", held)
            await self._pause(chance.uniform(0.0, 1.0))
            await self.act(client, "release", held)
        if removed:
            await self.act(client, "remove", removed)

    async def act(self, client: Client, action: Action, jobs: list[JobId]) -> Command:
        """Ask for something, and write down what comes of it."""
        command = Command(action=action, jobs=jobs)
        self.ledger.commands.append(command)
        try:
            told = await client.act(action, Select(jobs=jobs))
        except ClientError as error:
            command.refused = str(error)
        else:
            command.answered, command.outcomes = True, told.outcomes
        return command

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return


def _lifetime(chance: random.Random) -> float:
    kind = chance.random()
    if kind < 0.90:
        return chance.uniform(0.0, 0.3)
    return chance.uniform(0.5, 2.0) if kind < 0.98 else chance.uniform(*_LONG)
