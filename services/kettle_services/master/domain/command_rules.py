"""Which daemons a command is about, and what a change of the settings can do at once."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kettle_services.master.domain.start_order import role_of

AT_RESTART: Final = frozenset({
    "nats_url", "database_url", "database_urls", "pool", "home", "name", "daemon_list", "environment", "throwaway", "postgres_template",
    "nats_credentials", "nats_replicas", "health_port", "log_level", "log_format", "log_max_mib", "log_rotations", "otlp_endpoint", "trace_file",
    "archive_directory", "migrate", "migrate_post", "lock_fd", "not_responding_timeout", "linux_kernel_tuning_script",
    "kernel_tuning_timeout", "nats_ca", "nats_listen", "nats_certificate", "nats_key",
})  # fmt: skip
"""Settings of a master that are used when it starts, and not again."""


def chosen(names: Sequence[str], daemons: Sequence[str]) -> tuple[list[str], list[str]]:
    """
    The entries of the daemon list that are meant by `names` (none: all), in the list's order, and the names that mean none.

    A role means all of its entries: `schedd` means `schedd.ap1#2`, too.
    """
    if not names:
        return list(daemons), []
    wanted = {name.lower(): name for name in names}
    found = [daemon for daemon in daemons if daemon.lower() in wanted or role_of(daemon).lower() in wanted]
    known = {name.lower() for daemon in daemons for name in (daemon, role_of(daemon))}
    return found, [name for folded, name in wanted.items() if folded not in known]


def needs_restart(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """The settings that differ and are not used before the master is restarted."""
    return sorted(name for name in AT_RESTART if old.get(name) != new.get(name))
