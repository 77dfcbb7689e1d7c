"""
What iam does by itself: it forgets what is over, exchanges its keys, and records what its settings say when
that has changed.
"""

import asyncio
import hashlib
import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kettle.bus.ports import BusError
from kettle.runtime import SettingsError
from kettle_services.iam.domain import bans, job_tokens, join_tokens, sessions, token_requests
from kettle_services.iam.domain.joining_states import Worker
from kettle_services.iam.domain.state import Issuer, Register, Rules
from kettle_services.iam.ports import PoolMaster, TokenKeys
from kettle_services.iam.record import Record
from kettle_services.iam.settings import IamSettings
from kettle_wire.events import IdentityEvent
from kettle_wire.events.iam import IssuerAdded, IssuerRemoved, RulesLoaded

if TYPE_CHECKING:
    from kettle_services.iam.sealed_files import SealedFiles

CONFIGURATION: Final = "configuration"
"""Who did what the settings say."""

_log: Final = logging.getLogger(__name__)


async def keep_house(
    record: Record, keys: TokenKeys, files: "SealedFiles", settings: IamSettings, master: PoolMaster
) -> None:
    """Forget what is over, each `housekeeping` seconds; never returns."""
    told: set[Worker] = set()
    while True:
        now = time.time()
        if keys.rotate(now=now):
            _log.info("exchanged its signing keys")
        if await asyncio.to_thread(files.rotate, now=now, lifetime=settings.key_lifetime):
            _log.info("exchanged the key of the stored credentials")
        register = record.register
        over = [
            *join_tokens.over(register, kept=settings.join_tokens_kept, now=now),
            *join_tokens.ended(register, now=now),
            *bans.over(register, now=now),
            *sessions.over(register, now=now),
            *token_requests.over(register, now=now),
            *job_tokens.over(register, now=now),
        ]
        if over:
            await record.record(over)
            _log.info("forgot what is over", extra={"entries": len(over)})
        told = await _forget_access_points(register, master, told, now=now)
        await asyncio.sleep(settings.housekeeping)


async def _forget_access_points(
    register: Register, master: PoolMaster, told: set[Worker], *, now: float
) -> set[Worker]:
    """
    Have the people of those whose credential is over believed no more, once each; whom the master has been told of.
    """
    expired = {
        each
        for each in register.all(Worker)
        if each.joins == "schedd" and each.expires and each.expires <= now
    }
    done = told & expired
    for each in expired - told:
        try:
            await master.forget(each.worker)
        except BusError as error:
            _log.warning(
                "the people of %s are let in although its credential is over: %s", each.worker, error
            )
        else:
            done.add(each)
    return done


async def record_settings(record: Record, settings: IamSettings, files: Sequence[Path]) -> bool:
    """
    Record which issuers are accepted and which `files` of rules are in force, if that has changed; whether it has. Returns
    after the commit.

    Raises:
        SettingsError: a file cannot be read.
    """
    now = time.time()
    rules = [change for path in files for change in _rules(record.register, path, now)]
    changes = [*_issuers(record.register, settings, now), *rules]
    await record.record(changes)
    return bool(changes)


def _issuers(register: Register, settings: IamSettings, now: float) -> list[tuple[str, IdentityEvent]]:
    changes: list[tuple[str, IdentityEvent]] = []
    for issuer, audiences in settings.issuers.items():
        known = register.find(Issuer, f"issuer/{issuer}")
        if known is None or known.audiences != audiences:
            event = IssuerAdded(issuer=issuer, audiences=list(audiences), by=CONFIGURATION, at=now)
            changes.append((f"issuer/{issuer}", event))
    for stream, state in register.states.items():
        issuer = stream.removeprefix("issuer/")
        if isinstance(state, Issuer) and issuer not in settings.issuers:
            changes.append((stream, IssuerRemoved(issuer=issuer, by=CONFIGURATION, at=now)))
    return changes


def _rules(register: Register, path: Path, now: float) -> list[tuple[str, IdentityEvent]]:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise SettingsError(f"rules: {path} cannot be read: {error.strerror}") from error
    digest = hashlib.sha256(text).hexdigest()
    if register.find(Rules, f"rules/{path}") == Rules(digest):
        return []
    event = RulesLoaded(path=str(path), digest=digest, lines=len(text.splitlines()), by=CONFIGURATION, at=now)
    return [(f"rules/{path}", event)]
