"""
The settings that a personal pool starts with: `kettle.toml`, written at the first start and the user's from then on.

A pool on one machine has no network between its parts, so it can find out within seconds that one of them has ended.
Across sites, with the same times every slow link would look like a dead machine: there the defaults, which are
HTCondor's, are right.
"""

import os
import secrets
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from kettle.pool.home import Home

Value: TypeAlias = bool | int | float | str | Sequence["Value"] | Mapping[str, "Value"]
Tables = Mapping[str, Mapping[str, Value]]


class SettingLine(msgspec.Struct, frozen=True):
    """A setting and why it is not the default."""

    name: str
    value: Value
    why: str = ""


_FIRST_SLOT_UID: Final = 1_900_000_000
_SLOT_UIDS: Final = 1000
_POOLS: Final = 100_000

_OWNER_LEASE: Final = SettingLine(
    "owner_lease",
    10.0,
    "before a standby takes over from an owner that is silent; one that has ended is noticed at once; default 2",
)

PERSONAL: Final[Mapping[str, tuple[SettingLine, ...]]] = {
    **dict.fromkeys(("ce", "dagman", "iam", "scaler", "sessions"), (_OWNER_LEASE,)),
    "master": (
        SettingLine("backoff_constant", 0.1, "before a service that ended is started again; default 9"),
        SettingLine("backoff_unit", 0.05, "added, doubled at each further failure; default 1"),
        SettingLine("backoff_ceiling", 10.0, "default 3600"),
        SettingLine(
            "recover_factor",
            20.0,
            "of running after which earlier failures are forgotten; default 300",
        ),
        SettingLine(
            "not_responding_timeout", 20.0, "without a sign of life, then it is killed; default 3600"
        ),
        SettingLine("shutdown_graceful_timeout", 15.0, "for a service to finish; default 1800"),
        SettingLine("shutdown_fast_timeout", 5.0, "for a service to end when it is to be fast; default 300"),
        SettingLine("update_interval", 10.0, "default 300"),
    ),
    "collector": (
        _OWNER_LEASE,
        SettingLine(
            "classad_lifetime", 30.0, "an ad that is not repeated is forgotten after this; default 900"
        ),
        SettingLine("ad_interval", 10.0, "default 300"),
    ),
    "negotiator": (
        _OWNER_LEASE,
        SettingLine(
            "interval", 10.0, "a cycle starts at each change, and after this without one; default 60"
        ),
        SettingLine("ad_interval", 10.0, "default 300"),
    ),
    "schedd": (
        _OWNER_LEASE,
        SettingLine("alive_interval", 2.0, "between renewals of a claim; default 300"),
        SettingLine("ad_interval", 10.0, "default 300"),
    ),
    "gateway": (
        SettingLine("monitor_bytes", 256 << 20, "of published events that can be replayed; default 1 GiB"),
    ),
    "startd": (
        SettingLine("update_interval", 10.0, "default 300"),
        SettingLine(
            "machine_max_vacate_time",
            10.0,
            "for a job to end when it is asked to, then it is killed; default 600",
        ),
        SettingLine(
            "report_repeat", 1.0, "before a final report that nobody confirmed is repeated; default 5"
        ),
    ),
}

_HEAD: Final = """\
# The settings of this personal pool.  `kettle up` made this file and does not touch it again: it is yours.
#
# One table per service, [kettle] for what all of them share; `docs/reference` lists every setting.
# Times are seconds.  They are short, because here everything runs on one machine and a part that is silent for
# seconds is gone.  In a pool over many machines leave them out: the defaults are HTCondor's.
# A variable such as KETTLE_STARTD_NUM_CPUS is stronger than this file.
"""


def write_settings(home: Home, extra: Tables | None = None) -> bool:
    """Write the file unless it is there; whether it was written.  `extra` replaces and adds settings."""
    if home.settings.exists():
        return False
    stage = home.path / f".kettle.toml.{secrets.token_hex(4)}"
    fd = os.open(stage, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        file.write(render(extra or {}, pool_id=home.pool_id() if os.geteuid() == 0 else ""))
    stage.replace(home.settings)
    return True


def slot_uid_base(pool_id: str) -> int:
    """
    Where the accounts of a pool's slots begin: two pools of root on one machine must not share them.

    A job may signal whatever runs under its account, and a startd ends whatever runs under a slot's account.
    """
    return _FIRST_SLOT_UID + _SLOT_UIDS * (int(pool_id, 16) % _POOLS)


def render(extra: Tables, *, pool_id: str = "") -> str:
    """
    The text of the file; `pool_id` is that of a pool of root, whose jobs run under accounts of their own.
    """
    parts = [_HEAD]
    for table in sorted({*PERSONAL, *extra}):
        given = dict(extra.get(table, {}))
        chosen = list(PERSONAL.get(table, ()))
        if table == "startd" and pool_id:
            chosen.append(
                SettingLine(
                    "slot_uid_base", slot_uid_base(pool_id), "this pool's own; no account has these numbers"
                )
            )
        lines = [
            f"{line.name} = {toml_value(given.pop(line.name, line.value))}{f'  # {line.why}' if line.why else ''}"
            for line in chosen
        ]
        lines += [f"{name} = {toml_value(value)}" for name, value in given.items()]
        if lines:
            parts.append("\n".join([f"[{table}]", *lines]) + "\n")
    return "\n".join(parts)


def toml_value(value: Value) -> str:
    """A value as TOML has it."""
    if isinstance(value, Mapping):
        pairs = (f"{toml_value(name)} = {toml_value(one)}" for name, one in value.items())
        return f"{{ {', '.join(pairs)} }}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(toml_value(one) for one in value)}]"
    # JSON's numbers and strings are TOML's; JSON's escapes of control characters too.
    return msgspec.json.encode(value).decode()
