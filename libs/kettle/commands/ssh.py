"""
Commands of another host over one SSH connection: those that wait for a session go together into the next one.

However many are asked for, the host has a few sessions of ours, and each of them carries many commands.
"""

import asyncio
import secrets
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final

import asyncssh

from kettle.commands.batches import GRACE_S, LATE, Asked, answers, begun_in, script
from kettle.commands.port import CommandError, EndNotSeenError, NotStartedError, Ran
from kettle.commands.ssh_host import HostAddress, PrintedError, SshHost

_MOST: Final = 50
"""Commands in one session."""
_BEGINS_WITHIN_S: Final = 30.0
"""The last command of a session begins so long after the first at most; those that are left are in doubt."""
_MARGIN_S: Final = 10.0

_Waiting = tuple[Asked, asyncio.Future[Ran]]


def open_host(where: str, key_file: str, known_hosts_file: str, *, sessions: int, patience: float) -> SshHost:
    """
    A host by `USER@HOST:PORT`; it is connected when it is needed.  Raises ValueError: it, or its key, is none.
    """
    try:
        key = asyncssh.read_private_key(key_file)
    except (OSError, asyncssh.KeyImportError) as error:
        raise ValueError(f"key_file {key_file} cannot be used: {error}") from None
    address = HostAddress.read(where)
    return SshHost(address, key, known_hosts_file, sessions=sessions, patience=patience)


class SshCommands:
    """Runs commands as the account that the host lets in."""

    lingering: float = _BEGINS_WITHIN_S + GRACE_S

    def __init__(self, host: SshHost, environment: Mapping[str, str], *, sessions: int) -> None:
        """`sessions` at the same time at most."""
        self._host: Final = host
        self._environment: Final = {"LC_ALL": "C", **environment}
        self._sessions: Final = sessions
        self._waiting: deque[_Waiting] = deque()
        self._working: set[asyncio.Task[None]] = set()

    async def run(
        self, words: Sequence[str], standard_input: str = "", *, within: float, account: str = ""
    ) -> Ran:
        """As the port says; there is one account."""
        if account:
            raise NotStartedError(f"commands are run there with one login, and not as {account}")
        future: asyncio.Future[Ran] = asyncio.get_running_loop().create_future()
        self._waiting.append((Asked(words, standard_input, within), future))
        if len(self._working) < self._sessions:
            task = asyncio.create_task(self._work(), name="commands over SSH")
            self._working.add(task)
            task.add_done_callback(self._working.discard)
        return await future

    async def _work(self) -> None:
        while batch := self._cut():
            try:
                await self._carry_out(batch)
            finally:
                for _, future in batch:
                    if not future.done():
                        future.set_exception(EndNotSeenError("the end of the command was not seen"))

    def _cut(self) -> list[_Waiting]:
        """The next ones: each session gets its share."""
        most = min(_MOST, -(-len(self._waiting) // self._sessions))
        batch: list[_Waiting] = []
        while self._waiting and len(batch) < most:
            each = self._waiting.popleft()
            if not each[1].done():  # nobody waits any more
                batch.append(each)
        return batch

    async def _carry_out(self, batch: Sequence[_Waiting]) -> None:
        asked = [each for each, _ in batch]
        mark = f"kettle-{secrets.token_hex(16)}"
        text = script(asked, mark, self._environment, begins_within=_BEGINS_WITHIN_S)
        within = _BEGINS_WITHIN_S + max(each.within for each in asked) + GRACE_S + _MARGIN_S
        failure: CommandError = NotStartedError("the host took so long that the command was not begun")
        printed = ""
        try:
            printed = await self._host.run(text, within=within)
        except PrintedError as error:
            printed, failure = error.printed, EndNotSeenError(str(error))
        except CommandError as error:
            failure = error
        found = dict(answers(printed, mark))
        begun = set(begun_in(printed, mark))
        for number, (each, future) in enumerate(batch):
            if future.done():
                continue
            ran = found.get(number)
            if ran is None and number in begun:
                future.set_exception(EndNotSeenError(f"the end of {each.words[0]} was not seen: {failure}"))
            elif ran is None:
                future.set_exception(type(failure)(str(failure)))
            elif ran.status in LATE:
                future.set_exception(EndNotSeenError(f"{each.words[0]} did not end within {each.within:g} s"))
            else:
                future.set_result(ran)

    async def close(self) -> None:
        """Leave the host."""
        for task in list(self._working):
            task.cancel()
        await self._host.close()
