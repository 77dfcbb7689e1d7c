"""From a bootstrap file to a machine that has a credential and settings of its own."""

import logging
import os
import time
from typing import Final

from kettle.auth.private_files import write_private
from kettle.client.errors import CommandRefusedError
from kettle.pool.home import Home
from kettle.pool.joined_files import Record, keep, record_of
from kettle.pool.joining import Joined, JoinError, join
from kettle.pool.personal_settings import Value, slot_uid_base, toml_value
from kettle.retry.backoff import Backoff
from kettle.retry.deadline import Deadline
from kettle.retry.loop import Waits
from kettle_wire.bootstrap import Bootstrap

_MAY_PASS: Final = frozenset({"join.closed", "request.too_many"})
"""Refusals of iam that are about the moment, and not about the machine."""
_log: Final = logging.getLogger(__name__)
_UPDATE_S: Final = 60.0
"""Between repeats of ads: they say how long the machine still lives."""
_AGAIN: Final = Backoff(first=0.2, longest=10.0)


def join_pool(told: Bootstrap, home: Home, *, ends: float) -> Record:
    """
    Join under the name of the lease, with the settings that the machine is to have; what joining has written.

    iam may not be there yet, or not for a moment: it is asked again, with the same key, as long as there is time for it.
    `ends`: seconds since boot.  Raises JoinError.
    """
    write_private(home.settings, _settings(told, home, ends))
    keep(_joined(told, home), home.path)
    record = record_of(home.path)
    assert record is not None  # it was written just now
    return record


def _joined(told: Bootstrap, home: Home) -> Joined:
    deadline, waits = Deadline(told.join_within), Waits(_AGAIN)
    while True:
        try:
            return join(told.url, told.token, home=home.path, name=told.lease)
        except JoinError as error:
            pause = waits.delay()
            if pause >= deadline.left() or _is_final(error):
                raise
            _log.info("not joined yet: %s", error)
            time.sleep(pause)


def _is_final(error: JoinError) -> bool:
    """Whether iam has refused, and will again."""
    refusal = error.__cause__
    return isinstance(refusal, CommandRefusedError) and refusal.code not in _MAY_PASS


def _settings(told: Bootstrap, home: Home, ends: float) -> str:
    """The text of `kettle.toml`; what joining adds to it comes later."""
    given: dict[str, Value] = {
        "update_interval": _UPDATE_S,
        "quarantine_after": told.quarantine_after,
        "shutdown_kill_timeout": told.hurry / 2,
        **told.settings,
        "lease_ends": ends,
    }
    said = told.settings.get("attributes", {})
    attributes: dict[str, Value] = dict(said) if isinstance(said, dict) else {}
    attributes |= {"KettleLease": told.lease, "KettleDeployment": told.deployment}
    if told.pool:
        attributes["KettlePool"] = told.pool
    given["attributes"] = attributes
    if os.geteuid() == 0:
        given.setdefault("slot_uid_base", slot_uid_base(home.pool_id()))
    lines = [f"{name} = {toml_value(value)}" for name, value in given.items()]
    return "\n".join([f"# Of the lease {told.lease}; it ends with it.", "", "[startd]", *lines]) + "\n"
