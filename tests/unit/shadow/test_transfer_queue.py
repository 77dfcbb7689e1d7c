"""Whose turn it is to move files."""

import asyncio
from contextlib import suppress

from kettle_services.shadow.domain.transfer_queue import Turns
from kettle_services.shadow.file_transfer.queue import JobOnClaim, TransferQueue
from kettle_wire.jobs import JobId


def job(number: int) -> JobId:
    return JobId(1, number)


def node(number: int) -> JobOnClaim:
    """One of a job of several."""
    return JobOnClaim(job(0), f"claim#{number}")


def test_no_more_than_may_at_once() -> None:
    """The others wait, and asking again gives nobody a second place."""
    turns: Turns[JobId] = Turns(2)
    assert [True, True, False, False] == [turns.ask(job(n), "ada") for n in range(4)]
    assert [True, False] == [turns.ask(job(n), "ada") for n in (0, 2)]
    assert 2 == len(turns)
    assert [job(2)] == turns.done(job(0))
    assert [job(3)] == turns.done(job(1))
    assert 0 == len(turns)


def test_users_take_turns() -> None:
    """Who has a hundred jobs does not keep another user's only one waiting."""
    turns: Turns[JobId] = Turns(1)
    for number in range(100):
        turns.ask(job(number), "ada")
    turns.ask(job(500), "bob")
    turns.ask(job(600), "eve")

    order = [turns.done(job(0))[0]]
    for _ in range(4):
        order += turns.done(order[-1])
    assert [job(1), job(500), job(600), job(2), job(3)] == order


def test_who_gives_up_waiting_is_passed_over() -> None:
    """A job that was removed while it waited does not get a turn that nobody would end."""
    turns: Turns[JobId] = Turns(1)
    for number in range(3):
        turns.ask(job(number), "ada")
    assert [] == turns.done(job(1))
    assert [job(2)] == turns.done(job(0))


def test_without_a_limit() -> None:
    """Zero stands for none."""
    turns: Turns[JobId] = Turns(0)
    assert all(turns.ask(job(n), "ada") for n in range(1000))


async def test_results_wait_for_their_turn() -> None:
    """One after the other; who is cancelled while waiting stops nobody."""
    queue, order = TransferQueue(uploads=1, downloads=1), list[int]()
    go = asyncio.Event()

    async def bring_home(number: int) -> None:
        async with queue.download(JobOnClaim(job(number), f"claim#{number}"), "ada"):
            order.append(number)
            await go.wait()

    tasks = [asyncio.create_task(bring_home(number)) for number in range(3)]
    await asyncio.sleep(0)
    assert (2, [0]) == (queue.waiting, order)
    tasks[1].cancel()
    await asyncio.sleep(0)
    go.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert ([0, 2], 0) == (order, queue.waiting)


async def test_each_node_of_a_job_waits_for_a_turn_of_its_own() -> None:
    """
    Two that wait have their turns one after the other, and one that is lost while it waits takes nobody's place with it.
    """
    queue, order = TransferQueue(uploads=1, downloads=1), list[str]()
    go = asyncio.Event()

    async def bring_home(who: JobOnClaim) -> None:
        async with queue.download(who, "ada"):
            order.append(who.claim)
            await go.wait()

    moving = [JobOnClaim(job(1), "other"), *map(node, range(3))]
    tasks = [asyncio.create_task(bring_home(who)) for who in moving]
    await asyncio.sleep(0)
    assert (3, ["other"]) == (queue.waiting, order)
    tasks[2].cancel()
    with suppress(asyncio.CancelledError):
        await tasks[2]
    assert 2 == queue.waiting
    go.set()
    async with asyncio.timeout(10):
        await asyncio.gather(*(task for task in tasks if not task.cancelled()))
    assert (["other", "claim#0", "claim#2"], 0) == (order, queue.waiting)


def test_a_node_that_runs_ends_its_own_turn_only() -> None:
    """The others go on reading their input files, and count as those who do."""
    queue = TransferQueue(uploads=2, downloads=1)
    assert [True, True, False] == [queue.may_upload(node(number), "ada") for number in range(3)]
    queue.uploaded(node(0))
    assert [False, True, True] == [queue.may_upload(node(number), "ada") for number in range(3)]


def test_a_turn_that_is_not_used_ends() -> None:
    """Somebody else has it; who asks again after that waits behind them."""
    turns: Turns[JobId] = Turns(1, unused=30.0)
    assert turns.ask(job(0), "ada", 0.0)
    assert not turns.ask(job(1), "ada", 30.0)
    assert turns.ask(job(1), "ada", 31.0)
    assert not turns.ask(job(0), "ada", 32.0)
    assert [job(0)] == turns.done(job(1))


def test_a_turn_that_is_used_goes_on() -> None:
    """However long it takes in all, as long as one asks again in time."""
    turns: Turns[JobId] = Turns(1, unused=30.0)
    assert all(turns.ask(job(0), "ada", now) for now in (0.0, 30.0, 60.0))
    assert not turns.ask(job(1), "ada", 90.0)


def test_who_asks_no_more_while_it_waits_is_passed_over() -> None:
    """A machine that has vanished gets no turn that the others would have to wait out."""
    turns: Turns[JobId] = Turns(1, unused=30.0)
    turns.ask(job(0), "ada", 0.0)
    turns.ask(job(1), "ada", 1.0)
    turns.ask(job(0), "ada", 20.0)
    turns.ask(job(2), "ada", 40.0)
    assert 1 == len(turns)
    assert [job(2)] == turns.done(job(0))


def test_a_machine_that_vanishes_while_it_reads_leaves_its_turn() -> None:
    """Nobody has to wait until its lease is over."""
    now = 0.0
    queue = TransferQueue(uploads=1, downloads=1, clock=lambda: now)
    assert [True, False] == [queue.may_upload(node(number), "ada") for number in range(2)]
    now = 31.0
    assert queue.may_upload(node(1), "ada")
