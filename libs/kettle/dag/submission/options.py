"""
The options of condor_submit_dag and of condor_dagman, by their flags.

HTCondor's bindings know them by the names of options (`MaxIdle`), its commands by flags (`-MaxIdle`); several flags may be
one option.  A flag may be shortened: the first one in the order of the alphabet that begins so is meant.
"""

from typing import Final, Literal, NamedTuple

import msgspec

READINESS: Final = "readiness"
CRITICAL_PATH: Final = "critical-path"
ORDERS: Final = (READINESS, CRITICAL_PATH)
"""Which of several ready nodes go first: those that became ready first, or those behind which the most is left to do."""

Kind = Literal["switch", "number", "text", "texts"]


class SubmitDagOptions(msgspec.Struct):
    """What is said about one submission; each field is one of the options of `FLAGS`."""

    dag_files: list[str] = []
    max_idle: int | None = None
    max_jobs: int | None = None
    max_pre: int | None = None
    max_post: int | None = None
    max_hold: int | None = None
    debug_level: int | None = None
    priority: int = 0
    post_run: bool | None = None
    """Whether a POST script runs after a PRE script that failed; None: as it is configured."""
    run_valgrind: bool = False
    do_submit: bool = True
    do_recovery: bool = False
    dry_run: bool = False
    only_dump_dot: bool = False
    setup_only: bool = False
    append_lines: list[str] = []
    append_file: str = ""
    config_file: str = ""
    save_file: str = ""
    rescue_file: str = ""
    remote_schedd: str = ""
    schedd_daemon_ad_file: str = ""
    schedd_address_file: str = ""
    lock_file: str = ""
    csd_version: str = ""
    dagman_path: str = ""
    outfile_dir: str = ""
    batch_name: str = ""
    batch_id: str = ""
    notification: str = ""
    do_rescue_from: int = 0
    auto_rescue: int | None = None
    """None: as it is configured."""
    submit_method: int | None = None
    force: bool = False
    import_env: bool = False
    use_dag_dir: bool = False
    allow_version_mismatch: bool = False
    recurse: bool = False
    update_submit: bool = False
    suppress_notification: bool | None = None
    verbose: bool = False
    add_to_env: list[str] = []
    get_from_env: list[str] = []
    memo: bool | None = None
    """Whether nodes are left out that are the same as ones that have run; None: as it is configured."""
    keep_outputs: bool | None = None
    """Whether results of nodes stay on machines for the nodes that come next; None: as it is configured."""
    order: str = ""
    """One of `ORDERS`; empty: as it is configured."""
    reruns: int | None = None
    """How often nodes that have failed begin again when nothing else can run; None: never."""

    @property
    def primary(self) -> str:
        """The first DAG file, after which everything is named."""
        return self.dag_files[0]

    @property
    def is_multi(self) -> bool:
        """Whether several DAG files run together."""
        return len(self.dag_files) > 1


class Flag(NamedTuple):
    """One flag."""

    field: str
    """The field of `SubmitDagOptions`."""
    kind: Kind
    takes: str = ""
    """What stands behind it, for people; of a switch, empty."""
    help: str = ""
    """What condor_submit_dag says of it; empty if it is not for people."""
    value: bool = True
    """What a switch says."""


FLAGS: Final = {
    "-AllowVersionMismatch": Flag(
        "allow_version_mismatch", "switch", help="accept a description of another version"
    ),
    "-AlwaysRunPost": Flag(
        "post_run", "switch", help="run a POST script also after a PRE script that failed"
    ),
    "-a": Flag("append_lines", "texts", "LINE"),
    "-Append": Flag(
        "append_lines", "texts", "LINE", "a line for the description of the job that runs the DAG"
    ),
    "-AutoRescue": Flag("auto_rescue", "number", "0|1", "whether the newest rescue file is used by itself"),
    "-Batch-Name": Flag("batch_name", "text", "NAME", "how condor_q calls the jobs together"),
    "-Batch-Id": Flag("batch_id", "text", "ID"),
    "-Config": Flag("config_file", "text", "FILE", "settings for this DAG"),
    "-CsdVersion": Flag("csd_version", "text", "VERSION"),
    "-Dag": Flag("dag_files", "texts", "FILE"),
    "-DAGMan": Flag("dagman_path", "text", "PATH", "another program than condor_dagman"),
    "-Debug": Flag("debug_level", "number", "LEVEL", "how much is written to the .dagman.out file, 0 to 7"),
    "-do_recurse": Flag("recurse", "switch", help="write the descriptions of DAGs within this one, too"),
    "-dont_suppress_notification": Flag(
        "suppress_notification", "switch", help="let jobs of the DAG send mail", value=False
    ),
    "-DontAlwaysRunPost": Flag(
        "post_run", "switch", help="run no POST script after a PRE script that failed", value=False
    ),
    "-DoRecovery": Flag("do_recovery", "switch", help="accepted: a DAG always goes on where it was"),
    "-DoRescueFrom": Flag("do_rescue_from", "number", "N", "use the rescue file of this number"),
    "-Dot": Flag("only_dump_dot", "switch"),
    "-DryRun": Flag("dry_run", "switch"),
    "-f": Flag("force", "switch"),
    "-Force": Flag(
        "force", "switch", help="overwrite what an earlier submission left, and rename its rescue files"
    ),
    "-import_env": Flag(
        "import_env", "switch", help="give the whole environment to the job that runs the DAG"
    ),
    "-include_env": Flag("get_from_env", "texts", "NAMES", "give it these variables of the environment"),
    "-insert_env": Flag(
        "add_to_env", "texts", "NAME=VALUE", "give it these variables with these values; ; separates"
    ),
    "-insert_sub_file": Flag("append_file", "text", "FILE", "lines for its description, from a file"),
    "-keep_outputs": Flag(
        "keep_outputs", "switch", help="keep results of nodes on their machines for the nodes that come next"
    ),
    "-load_save": Flag("save_file", "text", "FILE", "begin where a save file was written"),
    "-Lockfile": Flag("lock_file", "text", "FILE", "another name for the lock file"),
    "-MaxIdle": Flag("max_idle", "number", "N", "submit no more nodes while this many jobs are idle"),
    "-MaxHold": Flag("max_hold", "number", "N", "how many HOLD scripts run at a time"),
    "-MaxJobs": Flag("max_jobs", "number", "N", "how many nodes are submitted at a time"),
    "-MaxPost": Flag("max_post", "number", "N", "how many POST scripts run at a time"),
    "-MaxPre": Flag("max_pre", "number", "N", "how many PRE scripts run at a time"),
    "-Memo": Flag(
        "memo",
        "switch",
        help="leave out nodes that are the same as in an earlier run, if their results are there",
    ),
    "-no_recurse": Flag(
        "recurse", "switch", help="write no descriptions of DAGs within this one", value=False
    ),
    "-no_submit": Flag("do_submit", "switch", help="write the description and submit nothing", value=False),
    "-Notification": Flag(
        "notification", "text", "WHEN", "when mail is sent: always, complete, error, never"
    ),
    "-o": Flag("outfile_dir", "text", "DIRECTORY"),
    "-Order": Flag(
        "order", "text", "ORDER", "which ready nodes go first: critical-path, or readiness (default)"
    ),
    "-outfile_dir": Flag("outfile_dir", "text", "DIRECTORY", "where the .dagman.out file is written"),
    "-Priority": Flag("priority", "number", "N", "what the priorities of all nodes are added to"),
    "-r": Flag("remote_schedd", "text", "SCHEDD"),
    "-Remote": Flag("remote_schedd", "text", "SCHEDD", "submit to this access point"),
    "-Reruns": Flag(
        "reruns",
        "number",
        "N",
        "how often nodes that failed begin again when nothing else can run (default 0)",
    ),
    "-RescueFile": Flag("rescue_file", "text", "FILE", "use this rescue file"),
    "-schedd-address-file": Flag(
        "schedd_address_file", "text", "FILE", "accepted: access points are found by name"
    ),
    "-schedd-daemon-ad-file": Flag(
        "schedd_daemon_ad_file", "text", "FILE", "accepted: they are found by name"
    ),
    "-SetupOnly": Flag("setup_only", "switch"),
    "-suppress_notification": Flag(
        "suppress_notification", "switch", help="let jobs of the DAG send no mail"
    ),
    "-SubmitMethod": Flag(
        "submit_method", "number", "0|1", "accepted: nodes are always submitted in one way"
    ),
    "-update_submit": Flag(
        "update_submit", "switch", help="write the description again, and keep its limits"
    ),
    "-UseDagDir": Flag("use_dag_dir", "switch", help="run each DAG in the directory of its file"),
    "-v": Flag("verbose", "switch"),
    "-Valgrind": Flag("run_valgrind", "switch"),
    "-Verbose": Flag("verbose", "switch", help="say more"),
}
"""Every flag."""

OPTIONS: Final = {flag.field.replace("_", ""): flag for flag in FLAGS.values()}
"""Each flag by the name that HTCondor's bindings have for its option, in lower case."""

EXCLUSIVE: Final = {
    "do_recovery": frozenset({"save_file"}),
    "do_rescue_from": frozenset({"save_file", "rescue_file"}),
    "rescue_file": frozenset({"save_file", "do_rescue_from"}),
    "save_file": frozenset({"do_recovery", "do_rescue_from", "rescue_file"}),
}
"""What cannot be said together with what."""
