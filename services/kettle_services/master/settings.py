"""What can be set about a master; the defaults are HTCondor's, a personal pool sets shorter times."""

import os
import socket
from collections import Counter
from typing import Annotated, Literal

import msgspec

from kettle.retry.backoff import Backoff
from kettle.runtime import Hidden, Secret, Settings
from kettle.runtime.setting_types import Pause, Seconds
from kettle_services.master.domain.bus_address import is_place
from kettle_services.master.domain.daemon import RestartRules
from kettle_services.master.domain.start_order import DAEMON_LIST, NEEDS_DATABASE, Instance
from kettle_wire.flocking import is_visitor


class MasterSettings(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`KETTLE_MASTER_<FIELD>` or the table `[master]`."""

    nats_url: Secret = ""
    """Empty: the master runs a NATS server of its own."""
    nats_listen: str = ""
    """
    `NAME:PORT` or `ADDRESS:PORT` where the master's own NATS server listens, for pools of several machines; needs a
    certificate. Empty: on the loopback interface, at a port that is free.
    """
    nats_certificate: str = ""
    """
    Path of the certificate (PEM) that the master's own NATS server shows; with it all its connections are encrypted. A new
    one in the same file is used from the next `kettle reconfig` on, without loss of a connection.
    """
    nats_key: str = ""
    """Path of the key of this certificate."""
    database_url: Secret = ""
    """Empty: the master runs a PostgreSQL server of its own, with a role for each service."""
    database_urls: Hidden[dict[str, str]] = {}
    """
    On a server of the site: what single services are given in place of `database_url`, each the address with a role of its
    own, by the name of the service. `archiver` is what accounting uses to move old events to files. `kettle log roles`
    prints how such roles are made.
    """
    daemon_list: tuple[str, ...] = DAEMON_LIST
    """`ROLE`, `ROLE.NAME`, or `ROLE.NAME#2` for an additional process as a standby."""
    flock_from: tuple[str, ...] = ()
    """Schedds of other pools that may send jobs here (FLOCK_FROM), each under a name `name@domain` that is for you to choose:
    their users are charged as `user@domain`. `kettle flock pass` makes the file that such a schedd needs. A change is used
    at once, by `kettle reconfig`."""
    view_from: tuple[str, ...] = ()
    """Collectors of other pools that may forward their ads here, to be seen beside ours, each under a name `name@domain` that
    is for you to choose: their ads have `ForwardedFrom` = `domain`. `kettle flock pass` makes the file that such a collector
    needs. A change is used at once, by `kettle reconfig`."""
    accounts: tuple[str, ...] = ()
    """Accounts of this machine that may use a pool of root, beside root: login names, and `@group` for the members of a
    group. Each finds the pool by itself, and its jobs' files are used with its rights. A change is used at once, by
    `kettle reconfig`."""
    accounts_directory: str = "/run/kettle"
    """Where each of these accounts finds a directory with the pool's address and its own key."""
    environment: Hidden[dict[str, dict[str, str]]] = {}
    """Variables for single entries of the daemon list, as in `[master.environment."schedd.ap1"]`."""
    backoff_constant: Pause = 9.0
    backoff_unit: Pause = 1.0
    backoff_factor: Annotated[float, msgspec.Meta(ge=1.0)] = 2.0
    backoff_ceiling: Seconds = 3600.0
    recover_factor: Seconds = 300.0
    """Seconds of running after which earlier failures are forgotten."""
    not_responding_timeout: Seconds = 3600.0
    """Seconds without a sign of life after which a service is killed and started again."""
    start_timeout: Seconds = 120.0
    """Seconds for a service to become ready; after that it is killed and started again."""
    start_attempts: Annotated[int, msgspec.Meta(ge=1)] = 3
    """How often a service may fail while the pool is being started before the start as a whole has failed."""
    shutdown_graceful_timeout: Seconds = 1800.0
    """Seconds for a service to finish what it has begun when it is stopped; then it is to end fast."""
    shutdown_fast_timeout: Seconds = 300.0
    """Seconds for a service to end fast; then it is killed."""
    abort_timeout: Seconds = 10.0
    """Seconds for a service that hangs to write down its stacks and end; then it is killed."""
    name: str = ""
    """The master's name on the bus, by which administrators address the host; empty: its host name."""
    administrators: tuple[str, ...] = ()
    """Who may switch the daemons of this host, by login name; none: the account of the master."""
    update_interval: Seconds = 300.0
    """Between repeats of the master's ad (MASTER_UPDATE_INTERVAL)."""
    linux_kernel_tuning_script: tuple[str, ...] = ()
    """
    Program with arguments that tunes the host when the master starts (LINUX_KERNEL_TUNING_SCRIPT); its output is logged.
    """
    kernel_tuning_timeout: Seconds = 60.0
    """Seconds for it; then it is killed, and the services start all the same."""
    new_binary_restart: Literal["GRACEFUL", "PEACEFUL", "NEVER"] = "GRACEFUL"
    """
    What to do when another version was installed: restart the host gracefully or peacefully, or only say so.
    """
    check_new_exec_interval: Seconds = 300.0
    """Seconds between two checks for one (MASTER_CHECK_NEW_EXEC_INTERVAL)."""
    new_binary_delay: Pause = 120.0
    """Seconds for which an installation must not have changed before it is used (MASTER_NEW_BINARY_DELAY)."""
    minimum_disk_mib: Annotated[int, msgspec.Meta(ge=0)] = 128
    """Free space below which the master stops."""
    disk_interval: Seconds = 10.0
    """Seconds between two checks of the free space."""
    migrate: bool = True
    """Bring the database's schema up to date before the services start."""
    migrate_post: bool | None = None
    """
    Also take the steps of the schema that older releases cannot work with.  Not said: only in the pool's own database, which no other
    host reaches; a database of the site (`database_url`) may have older services on other hosts, so `kettle upgrade finish` takes them.
    """
    throwaway: bool = False
    """
    The data need not survive a crash of the machine: no flushing, a faster start.  For tests and demonstrations.
    """
    postgres_template: str = ""
    """Directory of a stopped PostgreSQL server that a new one is copied from."""
    lock_fd: int = -1
    """
    The lock of the home, as an open file that the parent process has passed on; -1: the master takes it itself.
    """

    def __post_init__(self) -> None:
        if self.linux_kernel_tuning_script and not self.linux_kernel_tuning_script[0].startswith("/"):
            raise ValueError(
                f"linux_kernel_tuning_script: '{self.linux_kernel_tuning_script[0]}' is no absolute path"
            )
        self._check_daemons()
        self._check_listener()
        self._check_others()
        if self.database_urls and not self.database_url:
            raise ValueError(
                "database_urls: the master's own server has roles of its own; give database_url, too"
            )
        if unknown := self.database_urls.keys() - {*NEEDS_DATABASE, "archiver"}:
            known = ", ".join(sorted({*NEEDS_DATABASE, "archiver"}))
            raise ValueError(
                f"database_urls: no service uses {', '.join(sorted(unknown))}; there are: {known}"
            )
        if unknown := self.environment.keys() - set(self.daemon_list):
            raise ValueError(f"environment: {', '.join(sorted(unknown))} is not in the daemon_list")

    def _check_daemons(self) -> None:
        """Raises ValueError for an entry that is none, or that is there twice."""
        for daemon, count in Counter(self.daemon_list).items():
            one = Instance.parse(daemon)
            if count > 1:
                another = f"{daemon.partition('#')[0]}#{one.copy + 1}"
                raise ValueError(
                    f"daemon_list: '{daemon}' is there {count} times; another process that stands by is '{another}'"
                )

    def _check_listener(self) -> None:
        """Raises ValueError for a NATS server of our own that cannot be reached safely."""
        given = [name for name in ("nats_listen", "nats_certificate", "nats_key") if getattr(self, name)]
        if given and self.nats_url:
            raise ValueError(
                f"{given[0]}: it is for the master's own NATS server, and nats_url names another"
            )
        if self.nats_listen and not is_place(self.nats_listen):
            raise ValueError(
                f"nats_listen: '{self.nats_listen}' is not NAME:PORT or ADDRESS:PORT, as in bus.example.org:4222"
            )
        if self.nats_listen and not self.nats_certificate:
            raise ValueError(
                "nats_listen: other machines would send their secrets in the clear; give nats_certificate and nats_key, "
                "which kettle pki issue makes"
            )
        if bool(self.nats_certificate) != bool(self.nats_key):
            raise ValueError(
                "nats_key: a certificate and its key are given together (nats_certificate, nats_key)"
            )
        if self.nats_certificate and not self.nats_ca:
            raise ValueError(
                "nats_certificate: say by which authority clients trust it: nats_ca in [kettle], the path of its ca.pem"
            )

    def _check_others(self) -> None:
        """Raises ValueError for names of others that may use the pool that are none."""
        if self.accounts and os.geteuid() != 0:
            raise ValueError("accounts: only a pool of root can act with the rights of other accounts")
        if not self.accounts_directory.startswith("/"):
            raise ValueError(f"accounts_directory: '{self.accounts_directory}' is no absolute path")
        for name in self.flock_from:
            if not is_visitor(name):
                raise ValueError(
                    f"flock_from: '{name}' is no name of a visiting schedd: write name@domain, such as schedd@physics"
                )
        for name in self.view_from:
            if not is_visitor(name):
                raise ValueError(
                    f"view_from: '{name}' is no name of a forwarding collector: write name@domain, such as view@physics"
                )
            if name in self.flock_from:
                raise ValueError(f"view_from: {name} is in flock_from too; each pass is for one of the two")

    @property
    def own_name(self) -> str:
        """The master's name on the bus."""
        return self.name or socket.gethostname()

    @property
    def rules(self) -> RestartRules:
        """The times by which the daemons are kept."""
        backoff = Backoff(
            constant=self.backoff_constant,
            first=self.backoff_unit,
            factor=self.backoff_factor,
            longest=self.backoff_ceiling,
            spread=0.0,
        )
        return RestartRules(
            backoff=backoff,
            recover=self.recover_factor,
            start=self.start_timeout,
            not_responding=self.not_responding_timeout,
            graceful=self.shutdown_graceful_timeout,
            fast=self.shutdown_fast_timeout,
            abort=self.abort_timeout,
        )
