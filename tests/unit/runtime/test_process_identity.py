"""What is proven of a process that cannot be seen well."""

import asyncio
import os
from pathlib import Path

import pytest

from kettle.runtime.process_identity import gone, presence

A_WHILE_S = 0.2


async def is_pending(text: str) -> bool:
    waiting = asyncio.create_task(gone(text))
    done, _ = await asyncio.wait({waiting}, timeout=A_WHILE_S)
    waiting.cancel()
    await asyncio.wait({waiting})
    return not done


@pytest.mark.parametrize("error", [FileNotFoundError, PermissionError])
async def test_a_process_of_a_hidden_account_is_not_taken_for_dead(
    monkeypatch: pytest.MonkeyPatch, error: type[OSError]
) -> None:
    """Where /proc is mounted with hidepid, a living process of another account looks like none."""
    text, read = presence(), Path.read_text

    def hidden(path: Path, *arguments: str, **names: str) -> str:
        if path.name == "stat":
            raise error(str(path))
        return read(path, *arguments, **names)

    with monkeypatch.context() as proc:
        proc.setattr(Path, "read_text", hidden)
        pending = await is_pending(text)
    assert pending


async def test_where_processes_may_not_be_watched_nothing_is_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some sandboxes forbid pidfd_open: the lease's own time counts then."""

    def forbidden(_pid: int) -> int:
        raise PermissionError

    monkeypatch.setattr(os, "pidfd_open", forbidden)
    assert await is_pending(presence())
