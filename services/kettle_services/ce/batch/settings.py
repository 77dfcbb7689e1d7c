"""What can be set about a batch system: one table `[[ce.batch]]` each."""

from typing import Annotated

import msgspec

from kettle_wire.batch import BatchKind

_Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400 * 30)]


class FilesSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where nodes fetch the files of their jobs that share no file system with us: the table `[ce.files]`."""

    url: Annotated[
        str, msgspec.Meta(pattern=r"^(https://|http://(127\.0\.0\.1|\[::1\]|localhost)(:|/|$))[^\s\"']*$")
    ]
    """How nodes call it; without encryption only on one machine."""
    address: str = "127.0.0.1"
    """At which this service listens."""
    port: Annotated[int, msgspec.Meta(ge=1, le=65535)] = 9620
    certificate: str = ""
    """Path of its certificate (PEM); empty: a proxy before it has one."""
    key: str = ""
    """Path of the key of that certificate."""
    authority: str = ""
    """Path of the certificate of who has signed it; empty: one that the nodes trust anyway."""


class BatchSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A batch system whose commands are run here, or on a host that is reached by SSH."""

    name: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,62}$")]
    """What routes call it: `GridResource = "batch NAME"`."""
    kind: BatchKind
    directory: Annotated[str, msgspec.Meta(pattern=r"^/[^\x00\n]*$")]
    """Where jobs have their sandboxes: a directory that the nodes have too."""
    shared: bool = True
    """
    Whether the nodes see that directory as this service does; if not, each makes one of its own there, and jobs fetch their files from
    `[ce.files]` and send their results there.
    """
    environment: dict[str, str] = {}
    """
    Variables of its commands: `SLURM_CONF`, `SGE_ROOT`, `PATH`. Of another pool, where it is and with which credential:
    `KETTLE_POOL_URL`, `BEARER_TOKEN_FILE`. Of kind `local`: what jobs have in their environment.
    """
    host: str = ""
    """
    `USER@HOST` or `USER@HOST:PORT` where its commands are; empty: this machine. All jobs are then those of that login.
    """
    key_file: str = ""
    """The private key for it, in a form of OpenSSH without a passphrase."""
    known_hosts_file: str = ""
    """The keys of hosts, as OpenSSH keeps them: a host that cannot prove itself is told nothing."""
    sessions: Annotated[int, msgspec.Meta(ge=1, le=100)] = 8
    """So many at the same time over the connection: fewer than MaxSessions of its sshd, which is 10."""
    accounting: bool = False
    """Whether it keeps books that say how jobs ended which it does not list any more (`sacct`, `qacct`)."""
    hook: str = ""
    """
    A program where the commands are: it prints more directives, and is told CERequirements by its environment. It runs as the job's owner.
    """
    clusters: list[Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]] = []
    """
    Of Slurm: the clusters besides its own that the program of `hook` may send a job to (`#SBATCH --clusters`): there a job is looked for whose
    submission was in doubt.
    """
    parallel_environment: str = ""
    """Of Grid Engine: that of jobs with several slots; empty: `smp`."""
    gpus: str = ""
    """What a GPU is called there; empty: `gpu` of Grid Engine, `ngpus` of OpenPBS, `gpus` of Torque."""
    cpus: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 0
    """Of kind `local`: so many CPUs of this machine its jobs have together; 0: all of them."""
    memory: Annotated[int, msgspec.Meta(ge=0, le=1 << 40)] = 0
    """Of kind `local`: so many MB of memory; 0: all that this machine has."""
    patience: _Seconds = 60.0
    """Seconds in which each of its commands ends."""
    poll_least: _Seconds = 1.0
    """Seconds between two questions for all jobs, at least."""
    poll_most: _Seconds = 10.0
    """
    At most. In between it is twice as long as the last answer took while jobs change (once as long if the answer takes more than half a
    second), and twenty times as long when none has for a minute.
    """
    lost_after: _Seconds = 600.0
    """
    Seconds after which a job that it does not name any more, and of which nothing else says how it ended, is given up.
    """
    settling: _Seconds = 60.0
    """
    Seconds after which a job whose submission was in doubt is there or never will be, besides the time of the command.
    """

    @property
    def is_one_login(self) -> bool:
        """Whether all jobs are one person's there, also when several people have submitted them here."""
        return bool(self.host) or self.kind is BatchKind.KETTLE
