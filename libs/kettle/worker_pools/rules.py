"""What must hold of a pool besides the form of each value: that it can work at all."""

from collections.abc import Iterator
from typing import Final

import msgspec

from kettle.worker_pools.texts import money_text, size_text, span_text
from kettle_wire.worker_pools import Hibernation, Offer, PoolKind, WorkerPool

LONGEST_SCRIPT: Final = 8192
"""Clouds take 16 KiB of what a machine is told; the rest of it needs room, too."""
_MAX: Final[int] = next(each.default for each in msgspec.structs.fields(WorkerPool) if each.name == "max")
SMALLEST_MB: Final = 128
"""What a job asks for that says nothing of its memory (JOB_DEFAULT_REQUESTMEMORY)."""


def offer_faults(offer: Offer) -> Iterator[tuple[str, str]]:
    """What is wrong with one offer: the key, and a sentence."""
    if offer.memory < SMALLEST_MB:
        yield (
            "memory",
            f"memory: {size_text(offer.memory)} is too little for any job: one that says nothing of it asks for {SMALLEST_MB} MB",
        )
    if offer.price and not offer.currency:
        yield (
            "price",
            f'price: {money_text(offer.price, "")} of which currency? Write "{money_text(offer.price, "EUR")}", or currency = "EUR"',
        )
    if offer.start == "false":
        yield "start", "start: no job would ever run on its machines"
    script = offer.examination.script
    if script and not script.startswith("#!"):
        yield (
            "examination",
            "examination: script is the text of a program: its first line says what runs it, as #!/bin/sh",
        )
    if len(script) > LONGEST_SCRIPT:
        yield (
            "examination",
            f"examination: script has {len(script)} characters, and what a machine is told at its start has room for {LONGEST_SCRIPT}: put the program into its image",
        )
    if offer.life and offer.life <= offer.boot:
        yield (
            "life",
            f"life: its machines are gone after {span_text(offer.life)}, before they are ready ({span_text(offer.boot)})",
        )


def pool_faults(pool: WorkerPool) -> Iterator[tuple[tuple[str, ...], str]]:
    """What is wrong with a pool whose offers are sound: the keys, and a sentence."""
    yield from _bounds(pool)
    yield from _names(pool)
    yield from _machines(pool)
    yield from _costs(pool)
    if pool.kind is PoolKind.USER and not (pool.owners or pool.groups):
        yield ("kind",), "kind: a pool of kind user needs owners or groups, whose jobs alone it runs"


def _bounds(pool: WorkerPool) -> Iterator[tuple[tuple[str, ...], str]]:
    for key, sentence in count_faults(pool.min, pool.spare, pool.max):
        yield (key,), sentence
    if not pool.life:
        yield ("life",), "life: a machine that lives for no time runs nothing"
    if pool.least_life > pool.life:
        yield (
            ("least_life",),
            f"least_life: {span_text(pool.least_life)} is longer than life ({span_text(pool.life)})",
        )
    for number, offer in enumerate(pool.offers):
        if pool.life and offer.boot >= pool.life:
            yield (
                ("offer", str(number), "boot"),
                f"boot: {offer.name}: machines are gone after {span_text(pool.life)}, before they are ready ({span_text(offer.boot)})",
            )


def count_faults(min: int = 0, spare: int = 0, max: int = _MAX) -> Iterator[tuple[str, str]]:  # noqa: A002 - as in the file
    """What is wrong with how many machines there may be: the key, and a sentence."""
    for name, count in (("min", min), ("spare", spare)):
        if count > max:
            yield name, f"{name}: {count} machines are more than max allows ({max})"


def _machines(pool: WorkerPool) -> Iterator[tuple[tuple[str, ...], str]]:
    """Machines that are there belong to static pools, and each to one offer."""
    static = pool.kind is PoolKind.STATIC
    if pool.hibernate is not Hibernation.NONE and not static:
        yield (
            ("hibernate",),
            f'hibernate: only machines that are there sleep, and a pool of kind {pool.kind} has its own made: kind = "static"',
        )
    seen: dict[str, str] = {}
    for number, offer in enumerate(pool.offers):
        keys = ("offer", str(number), "machines")
        if offer.machines and not static:
            yield (
                keys,
                f'machines: a pool of kind {pool.kind} has its machines made: kind = "static" has them there',
            )
        if pool.hibernates and not offer.machines:
            yield (
                (*keys[:2], "name"),
                f"machines: say which machines {offer.name} has, by name: else none could be woken",
            )
        for machine in offer.machines:
            if machine.name in seen:
                yield keys, f"machines: {machine.name} is one of {seen[machine.name]} already"
            seen.setdefault(machine.name, offer.name)


def _names(pool: WorkerPool) -> Iterator[tuple[tuple[str, ...], str]]:
    seen: set[str] = set()
    for number, offer in enumerate(pool.offers):
        if offer.name in seen:
            yield ("offer", str(number), "name"), f"name: two offers are called {offer.name}"
        seen.add(offer.name)


def _costs(pool: WorkerPool) -> Iterator[tuple[tuple[str, ...], str]]:
    """Prices and the budget are compared, so they are in one currency."""
    if pool.budget and not pool.currency:
        yield (
            ("budget",),
            f'budget: {money_text(pool.budget, "")} of which currency? Write "{money_text(pool.budget, "EUR")}", or currency = "EUR"',
        )
    priced = [(number, offer) for number, offer in enumerate(pool.offers) if offer.price]
    if pool.budget and not priced:
        yield ("budget",), "budget: none of the offers has a price, so nothing would ever count"
    first = pool.currency or next((offer.currency for _, offer in priced), "")
    for number, offer in priced:
        if offer.currency != first:
            yield (
                ("offer", str(number), "price"),
                f"price: {offer.currency}, but {first} elsewhere: prices of one pool are compared, so they need one currency",
            )
