"""What can be set about a shadow."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from kettle.runtime import Settings
from kettle.runtime.setting_types import Bytes, MiB, Pause, Seconds
from kettle.runtime.settings_problems import SettingRefused
from kettle.transfer import spooled_jobs
from kettle.userlog import format_of


class ShadowSettings(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`KETTLE_SHADOW_<FIELD>` or the table `[shadow]`."""

    name: str = "shadow"
    schedd: str = "schedd"
    """The schedd whose jobs it handles."""
    inline_bytes: Bytes = 4096
    """Input files up to this size travel inside the activation; larger ones are fetched once per machine."""
    inline_total_bytes: Bytes = 64 * 1024
    """Input files of one job that travel inside its activation, together; the others are fetched too."""
    max_input_mib: MiB = 102_400
    """MiB that the input files of one job may have together; a job with more is held with code 32."""
    max_output_mib: MiB = 102_400
    """MiB that the results of one job may have together; a job with more is held with code 33."""
    object_store: Literal["shared", "always", "never"] = "shared"
    """
    Which input files go through the pool's object store: those that two machines ask for, all large ones, none.
    """
    object_bytes: Annotated[int, msgspec.Meta(gt=0)] = 1 << 20
    """Smaller files never go through the object store."""
    object_lifetime: Annotated[float, msgspec.Meta(ge=2)] = 3600.0
    """
    Seconds that a file stays in the object store; one that is asked for after half of them is sent again.
    """
    object_store_mib: Annotated[int, msgspec.Meta(gt=0)] = 2048
    """
    The most that is in the pool's object store at once; a full one is left alone, and files come from the shadow.
    """
    max_concurrent_uploads: Annotated[int, msgspec.Meta(ge=0)] = 100
    """
    Jobs whose input files are read from the shadow at once (MAX_CONCURRENT_UPLOADS); the others wait, users in turn. A machine
    that asks for nothing for half a minute gives its turn up. 0: no limit.
    """
    max_concurrent_downloads: Annotated[int, msgspec.Meta(ge=0)] = 100
    """Jobs whose results are fetched at once (MAX_CONCURRENT_DOWNLOADS)."""
    presigned_url_lifetime: Annotated[int, msgspec.Meta(gt=0, le=604_800)] = 86_400
    """
    Seconds for which a signed address of an object in S3 is valid; it has to be valid longer than a transfer.
    """
    gracefully_remove_jobs: bool = True
    """Whether jobs that say nothing about it are given time to end when they are removed, held or vacated."""
    cache_bytes: Bytes = 64 * 1024 * 1024
    """Memory for input files that many jobs share."""
    confirm_delay: Pause = 0.05
    """Seconds that a confirmation waits for an activation to travel with."""
    chirp_at_once: Annotated[int, msgspec.Meta(ge=1)] = 60
    """
    Messages of a job about itself that are recorded however fast they come; each KiB of one counts as one more.
    """
    chirp_hourly: Annotated[int, msgspec.Meta(ge=0)] = 600
    """How many more in an hour; others are answered "try again"."""
    chirp_delayed_update_prefix: tuple[str, ...] = ("Chirp*",)
    """
    Names of attributes, with `*`, that jobs may set as delayed updates, no matter what their machines permit.
    """
    limit_directory_access: tuple[str, ...] = ()
    """
    Directories below which programs of jobs may use files through Chirp (LIMIT_DIRECTORY_ACCESS), absolute or relative to the
    job's Iwd; none: wherever the job's owner may. `LimitDirectoryAccess` of a job limits it further.
    """
    chirp_open_files: Annotated[int, msgspec.Meta(ge=1)] = 256
    """Files that all jobs together have open here at once; one job has up to 32."""
    mail_server: str = ""
    """`host` or `host:port` of a mail server that accepts mail from this machine; empty: no mail is sent."""
    mail_from: str = ""
    """Who sends it; default `kettle@` and the domain."""
    mail_domain: str = ""
    """The domain that is added to names without one (EMAIL_DOMAIN); default the name of this machine."""
    mail_retry: Seconds = 60.0
    """
    Seconds to the first repeat of a mail that the mail server did not accept; doubled up to an hour, for five days.
    """
    mail_hourly: Annotated[int, msgspec.Meta(ge=0)] = 200
    """Mails about one owner's jobs in an hour; the others are dropped, and the log says how many."""
    default_userlog_format_options: str = ""
    """
    The format of job event logs of jobs that do not choose one: options of HTCondor's knob of this name, XML or JSON,
    UTC, SUB_SECOND, LEGACY.
    """
    event_log: str = ""
    """
    Path of a file with the events of all jobs (EVENT_LOG), relative to the pool's directory; empty: there is none.
    """
    event_log_max_size: Annotated[int, msgspec.Meta(ge=0)] = 1_000_000
    """Bytes after which it is put aside; 0: never."""
    event_log_max_rotations: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 1
    """So many old ones are kept: one as `.old`, more as `.1`, `.2` and so on, 1 the youngest."""
    event_log_format_options: str = ""
    """Its format, with the options of `default_userlog_format_options`."""
    event_log_job_ad_information_attrs: str = ""
    """Attributes of jobs that it contains with each event, as event 028."""
    event_log_retry: Seconds = 10.0
    """Seconds until it is tried again to write it; nothing is lost meanwhile."""
    iam: str = "iam"
    """The iam that gives tokens to jobs (`use_oauth_services`)."""
    token_wait: Pause = 300.0
    """Seconds that a job waits at its start for tokens while iam does not answer."""
    runs_without_tokens: bool = False
    """Whether it then runs without them; else it is held, with the reason."""
    retry: Seconds = 0.25
    """Seconds to the first repeat of a message that was not answered; doubles up to `retry_ceiling`."""
    retry_ceiling: Seconds = 5.0
    call_deadline: Seconds = 5.0
    """Seconds for an answer."""

    def __post_init__(self) -> None:
        for name in ("default_userlog_format_options", "event_log_format_options"):
            try:
                format_of(getattr(self, name))
            except ValueError as error:
                raise SettingRefused([name], str(error)) from error

    @property
    def spool_path(self) -> Path:
        """Where evicted jobs' files wait for their next run."""
        return self.state_path / "spool"

    @property
    def spooled_path(self) -> Path:
        """Where the files of jobs are that are sent to the access point and fetched from it."""
        return spooled_jobs.root(self.home_path, self.schedd)

    @property
    def state_path(self) -> Path:
        """Where it is kept how far the job event logs are written."""
        return self.home_path / "state"
