"""
Units of systemd for the three kinds of hosts of a pool of many machines: `kettle-server`, `kettle-access-point`, `kettle-worker`.

Each runs one master, which says by itself when it is ready, and keeps the daemons of its host.  What a unit may do is what its
daemons need: a server needs least, a machine that runs jobs of others needs most, since it closes these in itself.
"""

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

Kind = Literal["server", "access-point", "worker"]

PLACE: Final = Path("/etc/systemd/system")
_RUNS: Final = Path("/run/systemd/system")
"""There where systemd is what runs this machine."""
_DESCRIPTIONS: Final[Mapping[Kind, str]] = {
    "server": "Server of a Kettle pool",
    "access-point": "Access point of a Kettle pool",
    "worker": "Machine of a Kettle pool",
}
_CAPABILITIES: Final[Mapping[Kind, str]] = {
    # Its servers have accounts of their own, to which files are given.
    "server": "CAP_SETUID CAP_SETGID CAP_CHOWN CAP_KILL CAP_DAC_OVERRIDE CAP_FOWNER",
    # It acts on the files of jobs with the rights of their owners.
    "access-point": "CAP_SETUID CAP_SETGID CAP_CHOWN CAP_KILL CAP_DAC_OVERRIDE CAP_FOWNER",
    # It makes accounts, mounts, and groups for jobs, and measures these.
    "worker": (
        "CAP_SETUID CAP_SETGID CAP_CHOWN CAP_KILL CAP_DAC_OVERRIDE CAP_FOWNER CAP_SYS_ADMIN CAP_SYS_PTRACE CAP_SYS_CHROOT "
        "CAP_NET_ADMIN CAP_MKNOD CAP_SYS_NICE CAP_SYS_RESOURCE CAP_SETPCAP CAP_IPC_OWNER CAP_DAC_READ_SEARCH"
    ),
}
_HARDENED: Final = """\
NoNewPrivileges=yes
LockPersonality=yes
ProtectClock=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
RestrictRealtime=yes
SystemCallArchitectures=native
UMask=0022
"""
_OF_SERVICES: Final = """\
MemoryDenyWriteExecute=yes
PrivateDevices=yes
ProtectControlGroups=yes
ProtectKernelTunables=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
RestrictNamespaces=yes
RestrictSUIDSGID=yes
SystemCallFilter=@system-service @setuid
SystemCallErrorNumber=EPERM
"""
_OWN: Final[Mapping[Kind, str]] = {
    "server": _OF_SERVICES
    + """\
PrivateTmp=yes
ProtectHome=read-only
ProtectSystem=strict
""",
    "access-point": _OF_SERVICES
    + """\
ProtectSystem=full
RuntimeDirectory=kettle
RuntimeDirectoryMode=0755
""",
    "worker": """\
Delegate=yes
ProtectSystem=full
""",
}


def name_of(kind: Kind) -> str:
    """The name of the unit."""
    return f"kettle-{kind}.service"


def render(kind: Kind, home: Path, program: Path) -> str:
    """The text of a unit for the pool's directory `home`, with `program` as `kettle`."""
    return f"""\
# Made by Kettle.  Change it with: systemctl edit {name_of(kind)}
[Unit]
Description={_DESCRIPTIONS[kind]}
Wants=network-online.target
After=network-online.target time-sync.target

[Service]
Type=notify
NotifyAccess=main
Environment=KETTLE_HOME={home}
ExecStart={program} run master
ExecReload=kill -HUP $MAINPID
Restart=on-failure
RestartSec=5
TimeoutStartSec=5min
# A master that says nothing for so long hangs; one that is busy does not.
WatchdogSec=2min
# Jobs have their time to end: the stages of a stop have deadlines of their own.
TimeoutStopSec=2h
KillMode=mixed
LimitNOFILE=65536
TasksMax=infinity
CacheDirectory=kettle
ReadWritePaths={home}
CapabilityBoundingSet={_CAPABILITIES[kind]}
{_HARDENED}{_OWN[kind]}
[Install]
WantedBy=multi-user.target
"""


class UnitError(Exception):
    """The unit cannot be used; the message is a sentence."""


def systemd_runs() -> bool:
    """Whether systemd runs this machine, and would do what we say."""
    return _RUNS.is_dir() and shutil.which("systemctl") is not None


def install(kind: Kind, home: Path) -> Path:
    """Write the unit, enable and start it; its file.  Raises UnitError."""
    path = PLACE / name_of(kind)
    try:
        path.write_text(render(kind, home.absolute(), program()), encoding="utf-8")
    except OSError as error:
        raise UnitError(f"{path} cannot be written: {error.strerror}") from error
    _systemctl("daemon-reload")
    _systemctl("enable", "--now", path.name)
    return path


def uninstall(kind: Kind) -> Path | None:
    """Disable the unit and remove it; its file, None if there is none.  Raises UnitError."""
    path = PLACE / name_of(kind)
    if not path.exists():
        return None
    _systemctl("disable", path.name)
    try:
        path.unlink()
    except OSError as error:
        raise UnitError(f"{path} cannot be removed: {error.strerror}") from error
    _systemctl("daemon-reload")
    return path


def program() -> Path:
    """The `kettle` of this installation."""
    return Path(sys.executable).parent / "kettle"


def _systemctl(*words: str) -> None:
    done = subprocess.run(["systemctl", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise UnitError(f"systemctl {' '.join(words)} failed: {done.stderr.strip() or done.returncode}")
