"""How long a job has waited for its turn to move files."""

import pytest

from kettle_services.shadow.file_transfer.queue import TransferTurn
from kettle_wire.events import Transfer


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    at = [100.0]
    monkeypatch.setattr("kettle_services.shadow.file_transfer.queue.time.time", lambda: at[0])
    return at


def test_waiting_is_no_transfer(clock: list[float]) -> None:
    """From the first time that it asks to the first time that it has its turn."""
    turn = TransferTurn()
    for clock[0], given in ((100.0, False), (102.0, False), (105.0, True), (109.0, True)):
        turn.ask(given=given)

    assert Transfer(began=105.0, ended=110.0, queued=5.0) == turn.of(Transfer(began=100.0, ended=110.0))
    assert turn.of(None) is None


def test_who_does_not_wait(clock: list[float]) -> None:
    """What the worker says stays as it is; who never asks, because the machine had it all, neither."""
    moved = Transfer(began=100.0, ended=101.0)
    asked = TransferTurn()
    asked.ask(given=True)

    assert moved == asked.of(moved) == TransferTurn().of(moved)


def test_results(clock: list[float]) -> None:
    """Fetched by us from our turn on; after those that the worker itself has sent."""
    turn = TransferTurn()
    turn.ask(given=False)
    clock[0] = 104.0
    turn.ask(given=True)
    clock[0] = 107.0

    assert Transfer(began=104.0, ended=107.0, queued=4.0) == turn.ended(None)
    assert Transfer(began=90.0, ended=107.0) == turn.ended(Transfer(began=90.0, ended=95.0))
