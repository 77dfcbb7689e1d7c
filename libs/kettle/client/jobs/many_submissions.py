"""Many submissions, sent together: as many in one command as it may carry, and each refused by itself."""

from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from kettle.client.errors import ClientError, CommandRefusedError
from kettle.jobs.needed_tokens import SERVICES
from kettle_wire.ads.types import Scalar
from kettle_wire.commands.queue import Submit, Submitted
from kettle_wire.commands.submissions import (
    MOST_TOGETHER,
    SUBMIT_MANY,
    SUBMIT_MANY_FROM_JOB,
    Outcome,
    SubmitAlike,
    SubmitMany,
)

if TYPE_CHECKING:
    from kettle.client.connections.transport import Requests
    from kettle.submit import Submission

TOGETHER_BYTES: Final = 512 * 1024
"""A command goes when it has so many: so it is one message, and others come between two."""
_encode: Final = msgspec.msgpack.Encoder().encode


async def submit_many(
    requests: "Requests", submissions: "Mapping[str, Submission]", *, spool: Collection[str] = ()
) -> dict[str, Submitted | ClientError]:
    """
    What became of each, by its command id, under which a repeat submits nothing; `spool`: those whose files are sent.
    """
    found: dict[str, Submitted | ClientError] = await _without_credentials(requests, submissions)
    sound = [
        Submit(id=command, ad=each.ad, columns=each.columns, rows=each.rows, spool=command in spool)
        for command, each in submissions.items()
        if command not in found
    ]
    endpoint = SUBMIT_MANY_FROM_JOB if requests.pool.by_job else SUBMIT_MANY
    for together in _commands(sound, found):
        alone, alike = in_common(together)
        ids = [*(each.id for each in alone), *(command for each in alike for command in each.ids)]
        try:
            reply = await requests.ask(endpoint, SubmitMany(submissions=alone, alike=alike))
        except ClientError as error:
            found |= dict.fromkeys(ids, error)
        else:
            found |= {command: _result(outcome) for command, outcome in zip(ids, reply.outcomes, strict=True)}
    return found


async def _without_credentials(
    requests: "Requests", submissions: "Mapping[str, Submission]"
) -> dict[str, Submitted | ClientError]:
    """Those that want tokens of services of which nothing is stored, each with what to do."""
    wanting = {command: each.ad for command, each in submissions.items() if SERVICES in each.ad}
    if not wanting:
        return {}
    from kettle.client.jobs.stored_credentials import missing_credentials, stored_credentials

    known = await stored_credentials(requests)
    if known is None:
        return {}
    return {
        command: ClientError(missing)
        for command, ad in wanting.items()
        if (missing := missing_credentials(ad, known))
    }


def _commands(
    submissions: list[Submit], found: dict[str, Submitted | ClientError]
) -> Generator[list[Submit]]:
    """Submissions as they go together; what cannot be sent at all is put into `found`."""
    together: list[Submit] = []
    size = 0
    for each in submissions:
        try:
            size += len(_encode(each))
        except UnicodeEncodeError as error:
            found[each.id] = ClientError(
                f"the jobs contain a text that cannot be sent, because it is not UTF-8: {error.object!r}"
            )
            continue
        if together and (size > TOGETHER_BYTES or len(together) == MOST_TOGETHER):
            yield together
            together, size = [], len(_encode(each))
        together.append(each)
    if together:
        yield together


def in_common(submissions: Sequence[Submit]) -> tuple[list[Submit], list[SubmitAlike]]:
    """
    Those that are sent as they are, and those of one job each whose ads have the same names, with what is the same said once.
    """
    alone: list[Submit] = []
    by_names: dict[tuple[str, ...], list[Submit]] = {}
    for each in submissions:
        if each.spool or each.columns or len(each.rows) != 1:
            alone.append(each)
        else:
            by_names.setdefault(tuple(each.ad), []).append(each)
    alike: list[SubmitAlike] = []
    for names, some in by_names.items():
        if len(some) == 1:
            alone += some
        else:
            alike.append(_alike(names, some))
    return alone, alike


def _alike(names: Iterable[str], submissions: Sequence[Submit]) -> SubmitAlike:
    ad = submissions[0].ad
    columns = [name for name in names if _differs(ad[name], (each.ad[name] for each in submissions))]
    rows = [[each.ad[name] for name in columns] for each in submissions]
    return SubmitAlike(ids=[each.id for each in submissions], ad=ad, columns=columns, rows=rows)


def _differs(value: Scalar, others: Iterable[Scalar]) -> bool:
    """Whether one is not the same: 1, 1.0 and true are not."""
    return any(other is not value and (other != value or type(other) is not type(value)) for other in others)


def _result(outcome: Outcome) -> Submitted | ClientError:
    if outcome.submitted is not None:
        return outcome.submitted
    assert outcome.refusal is not None, "an outcome is the one or the other"
    return CommandRefusedError(outcome.refusal.code, outcome.refusal.message)
