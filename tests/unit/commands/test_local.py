"""Commands of a batch system that end before anybody can tell them something."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from kettle.accounts.lookup import Accounts
from kettle.accounts.rights import Rights
from kettle.commands import local
from kettle.commands.local import LocalCommands
from kettle.commands.port import EndNotSeenError, Ran
from kettle.testing.patience import PATIENCE_S


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_command_need_not_read_what_it_is_given(loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    """
    One that ends at once says how it ended, on the loop of services as well as on that of tests; one that reads gets all of it.
    """

    async def work() -> list[Ran]:
        commands = LocalCommands({})
        asked = [commands.run(["false"], "x" * 1_000_000, within=PATIENCE_S) for _ in range(20)]
        return [
            *await asyncio.gather(*asked),
            await commands.run(["wc", "-c"], "x" * 1_000_000, within=PATIENCE_S),
        ]

    with asyncio.Runner(loop_factory=loop) as runner:
        *ended, read = runner.run(work())
    assert {1} == {each.status for each in ended}
    assert Ran(0, "1000000\n", "") == read


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize("where", ["", ">&2"])
def test_a_command_that_writes_without_end_is_ended(
    loop: Callable[[], asyncio.AbstractEventLoop], where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its words take no more memory than they may, and who has asked is told why there is no answer."""
    monkeypatch.setattr(local, "MOST_BYTES", 1 << 20)

    async def work() -> Ran:
        commands = LocalCommands({})
        with pytest.raises(EndNotSeenError, match="sh says more than 1048576 bytes, and was ended"):
            await commands.run(["sh", "-c", f"exec yes {where}"], within=PATIENCE_S)
        return await commands.run(["head", "-c", "1048576", "/dev/zero"], within=PATIENCE_S)

    with asyncio.Runner(loop_factory=loop) as runner:
        ran = runner.run(work())
    assert (0, 1 << 20) == (ran.status, len(ran.output))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start commands of others")
@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize("groups", [(), (3, 4)])
def test_a_command_is_run_as_an_account(
    loop: Callable[[], asyncio.AbstractEventLoop], groups: tuple[int, ...]
) -> None:
    """With its groups and no others, on the loop of services as well as on that of tests."""

    class Known(Accounts):
        async def find(self, owner: str) -> Rights:
            return Rights(2, 2, groups)

    async def work() -> Ran:
        commands = LocalCommands({}, Known())
        return await commands.run(
            ["sh", "-c", "id -u; id -G; cat"], "given", within=PATIENCE_S, account="bin"
        )

    with asyncio.Runner(loop_factory=loop) as runner:
        ran = runner.run(work())
    assert Ran(0, f"2\n{' '.join(map(str, (2, *groups)))}\ngiven", "") == ran


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize(
    "doing", ["exec 3<{}; setsid cat <&3 & exit 0", "kill -STOP $PPID"], ids=["held", "stopped"]
)
def test_nobody_waits_for_what_a_command_leaves_behind(
    monkeypatch: pytest.MonkeyPatch,
    loop: Callable[[], asyncio.AbstractEventLoop],
    doing: str,
    tmp_path: Path,
) -> None:
    """Something that holds what is written, or a time limit that the command has stopped."""
    monkeypatch.setattr(local, "_GRACE_S", 0.2)
    held = tmp_path / "held"
    os.mkfifo(held)

    async def work() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await LocalCommands({}).run(["sh", "-c", doing.format(held)], within=1.0)

    writing = os.open(held, os.O_RDWR)
    try:
        with asyncio.Runner(loop_factory=loop) as runner, pytest.raises(EndNotSeenError):
            runner.run(work())
    finally:
        os.close(writing)
