"""
The commands of the language: those that are carried out, their other names, and those that only HTCondor knows.

A description with a command that is not carried out is refused: a policy that is silently ignored is found out
about when the job has already done the wrong thing.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from kettle.terminal.nearest_names import nearest

NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "accounting_group": ("AccountingGroup",),
    "accounting_group_user": ("AcctGroupUser",),
    "allow_arguments_v1": (),
    "allow_environment_v1": (),
    "allowed_execute_duration": ("AllowedExecuteDuration",),
    "allowed_job_duration": ("AllowedJobDuration",),
    "arguments": ("args",),
    "arguments2": (),
    "aws_access_key_id_file": ("s3_access_key_id_file", "gs_access_key_id_file", "EC2AccessKeyId"),
    "aws_region": ("s3_region", "AWSRegion"),
    "aws_secret_access_key_file": (
        "s3_secret_access_key_file",
        "gs_secret_access_key_file",
        "EC2SecretAccessKey",
    ),
    "batch_id": ("JobBatchId",),
    "batch_extra_submit_args": ("BatchExtraSubmitArgs",),
    "batch_name": ("JobBatchName",),
    "batch_project": ("BatchProject",),
    "batch_queue": ("BatchQueue",),
    "batch_runtime": ("BatchRuntime",),
    "checkpoint_destination": ("CheckpointDestination",),
    "checkpoint_exit_code": ("SuccessCheckpointExitCode",),
    "concurrency_limits": (),
    "concurrency_limits_expr": (),
    "container_image": ("ContainerImage",),
    "container_service_names": ("ContainerServiceNames",),
    "container_target_dir": ("ContainerTargetDir",),
    "core_size": ("coresize",),
    "cron_day_of_month": ("CronDayOfMonth",),
    "cron_day_of_week": ("CronDayOfWeek",),
    "cron_hour": ("CronHour",),
    "cron_minute": ("CronMinute",),
    "cron_month": ("CronMonth",),
    "cuda_version": ("CUDAVersion",),
    "dag_node_name": ("DAGNodeName",),
    "dagman_job_id": ("DAGManJobId",),
    "dagman_log": ("DAGManNodesLog",),
    "deferral_prep_time": ("cron_prep_time", "CronPrepTime", "DeferralPrepTime"),
    "deferral_time": ("DeferralTime",),
    "deferral_window": ("cron_window", "CronWindow", "DeferralWindow"),
    "description": ("JobDescription",),
    "disk_usage": ("DiskUsage",),
    "docker_image": ("DockerImage",),
    "docker_network_type": ("DockerNetworkType",),
    "docker_override_entrypoint": ("DockerOverrideEntrypoint",),
    "docker_pull_policy": ("DockerPullPolicy",),
    "dont_encrypt_input_files": ("DontEncryptInputFiles",),
    "dont_encrypt_output_files": ("DontEncryptOutputFiles",),
    "email_attributes": ("EmailAttributes",),
    "encrypt_execute_directory": ("EncryptExecuteDirectory",),
    "encrypt_input_files": ("EncryptInputFiles",),
    "encrypt_output_files": ("EncryptOutputFiles",),
    "environment": ("env",),
    "environment2": (),
    "erase_output_and_error_on_restart": ("EraseOutputAndErrorOnRestart",),
    "error": ("stderr",),
    "executable": ("Cmd",),
    "getenv": ("get_env",),
    "gpus_maximum_capability": ("GPUsMaxCapability",),
    "gpus_minimum_capability": ("GPUsMinCapability",),
    "gpus_minimum_memory": ("GPUsMinMemory",),
    "gpus_minimum_runtime": ("GPUsMinRuntime",),
    "grid_resource": ("GridResource",),
    "hold": (),
    "hold_kill_sig": ("HoldKillSig",),
    "hook_keyword": ("HookKeyword",),
    "image_size": ("ImageSize",),
    "initialdir": ("Iwd", "initial_dir", "job_iwd"),
    "input": ("stdin",),
    "interactive": ("InteractiveJob",),
    "job_ad_information_attrs": ("JobAdInformationAttrs",),
    "job_lease_duration": ("JobLeaseDuration",),
    "job_machine_attrs": ("JobMachineAttrs",),
    "job_machine_attrs_history_length": ("JobMachineAttrsHistoryLength",),
    "job_max_vacate_time": ("JobMaxVacateTime",),
    "jobset": ("JobSetName",),
    "keep_claim_idle": ("KeepClaimIdle",),
    "kill_sig": ("KillSig",),
    "kill_sig_timeout": ("KillSigTimeout",),
    "leave_in_queue": ("LeaveJobInQueue",),
    "log": ("userlog",),
    "machine_count": ("node_count", "MachineCount", "NodeCount"),
    "manifest": ("ManifestDesired",),
    "manifest_dir": ("ManifestDir",),
    "match_list_length": ("LastMatchListLength",),
    "log_xml": ("UserLogUseXML",),
    "max_idle": ("materialize_max_idle", "JobMaterializeMaxIdle"),
    "max_job_retirement_time": ("MaxJobRetirementTime",),
    "max_materialize": ("JobMaterializeLimit",),
    "max_retries": ("JobMaxRetries",),
    "max_transfer_input_mb": ("MaxTransferInputMB",),
    "max_transfer_output_mb": ("MaxTransferOutputMB",),
    "mount_under_scratch": ("MountUnderScratch",),
    "next_job_start_delay": ("NextJobStartDelay",),
    "nice_user": ("NiceUser",),
    "noop_job": ("IsNoopJob",),
    "noop_job_exit_code": ("NoopJobExitCode",),
    "noop_job_exit_signal": ("NoopJobExitSignal",),
    "notification": ("JobNotification",),
    "notify_user": ("NotifyUser",),
    "on_exit_hold": ("OnExitHold",),
    "on_exit_hold_reason": ("OnExitHoldReason",),
    "on_exit_hold_subcode": ("OnExitHoldSubCode",),
    "on_exit_remove": ("OnExitRemove",),
    "output": ("stdout",),
    "output_destination": ("OutputDestination",),
    "output_directory": ("OutputDirectory",),
    "periodic_hold": ("PeriodicHold",),
    "periodic_hold_reason": ("PeriodicHoldReason",),
    "periodic_hold_subcode": ("PeriodicHoldSubCode",),
    "periodic_release": ("PeriodicRelease",),
    "periodic_remove": ("PeriodicRemove",),
    "periodic_vacate": ("PeriodicVacate",),
    "preserve_relative_paths": ("PreserveRelativePaths",),
    "priority": ("prio", "JobPrio"),
    "project_name": ("ProjectName",),
    "public_input_files": ("PublicInputFiles",),
    "rank": ("preferences",),
    "remote_initialdir": ("RemoteIwd",),
    "remove_kill_sig": ("RemoveKillSig",),
    "request_cpus": ("RequestCpus",),
    "request_disk": ("RequestDisk",),
    "request_gpus": ("RequestGPUs",),
    "request_memory": ("RequestMemory",),
    "require_gpus": ("RequireGPUs",),
    "requirements": (),
    "retry_request_disk": (),
    "retry_request_memory": (),
    "retry_request_memory_increase": (),
    "retry_request_memory_max": (),
    "retry_until": (),
    "run_as_owner": ("RunAsOwner",),
    "s3_endpoint": ("S3Endpoint",),
    "scitokens_file": ("ScitokensFile",),
    "services": ("Services",),
    "services_shared_with": ("ServicesSharedWith",),
    "shell": (),
    "should_transfer_files": ("ShouldTransferFiles",),
    "skip_filechecks": (),
    "skip_if_dataflow": ("SkipIfDataflow",),
    "stack_size": ("StackSize",),
    "starter_debug": ("JobStarterDebug",),
    "starter_log": ("JobStarterLog",),
    "stream_error": ("StreamErr",),
    "stream_input": ("StreamIn",),
    "stream_output": ("StreamOut",),
    "submit_event_notes": ("SubmitEventNotes",),
    "submit_event_notes_attrs": ("SubmitEventNotesAttrs",),
    "submit_event_user_notes": ("SubmitEventUserNotes",),
    "success_exit_code": ("JobSuccessExitCode",),
    "suspend_job_at_exec": ("SuspendJobAtExec",),
    "tasks": (),
    "transfer_checkpoint_files": ("TransferCheckpoint",),
    "transfer_common_input": ("CommonInputFiles",),
    "transfer_container": ("TransferContainer",),
    "transfer_exclude_files": ("TransferExclude",),
    "transfer_executable": ("TransferExecutable",),
    "transfer_input": ("TransferIn",),
    "transfer_input_files": ("TransferInputFiles",),
    "transfer_output_files": ("TransferOutputFiles",),
    "transfer_output_remaps": ("TransferOutputRemaps",),
    "transfer_plugins": ("TransferPlugins",),
    "ulog_execute_attrs": ("UserLogExecuteEventAttrs",),
    "universe": ("JobUniverse",),
    "use_oauth_services": (),
    "use_scitokens": ("use_scitoken",),
    "use_x509userproxy": (),
    "want_graceful_removal": ("WantGracefulRemoval",),
    "want_io_proxy": ("WantIOProxy",),
    "want_pool_access": ("WantPoolAccess",),
    "when_to_transfer_output": ("WhenToTransferOutput",),
    "x509userproxy": (),
}
"""
Each command with its other spellings, as HTCondor looks for them; all are compared without regard to case.
"""

_NOT_YET: Final = """
    docker_send_credentials on_evict_checks primary_unix_group
    tool_daemon_cmd transfer_error transfer_output
    """

NOT_YET: Final = frozenset(_NOT_YET.split())
"""Commands of HTCondor that this version does not carry out."""

_INSTEAD: Final[Mapping[str, str]] = {
    "docker_send_credentials": "put the image where the machines can read it, or send an archive of it",
    "transfer_error": "leave out error = FILE, and nothing of it comes back",
    "transfer_output": "leave out output = FILE, and nothing of it comes back",
}
"""What does the same as some of them."""

PORT: Final = "_container_port"
"""How commands end that say the port of a service of a container."""

CUSTOM: Final = "my."
"""What `+Attr` and `MY.Attr` are kept under."""

OAUTH: Final = re.compile(r"(?P<service>.+?)_oauth_(?P<what>permissions|resource)(?:_(?P<handle>.+))?")
"""What a token of a service is to say, in lower case."""

_RESOURCE: Final = re.compile(r"request_([a-z][a-z0-9_]+)")
_REQUIRE: Final = re.compile(r"require_(?!(?:cpus|memory|disk)$)[a-z][a-z0-9_]+")
_OFTEN: Final = ("cpus", "memory", "disk", "gpus")
_KNOWN: Final = frozenset(spelling.lower() for name, others in NAMES.items() for spelling in (name, *others))


def resource_tag(name: str) -> str | None:
    """The machine resource that a `request_<tag>` command asks for, other than CPUs, memory and disk."""
    lower = name.lower()
    match = _RESOURCE.fullmatch(lower)
    if match is None or lower in _KNOWN or _meant(match[1]) is not None:
        return None
    return name[len("request_") :]


def is_choice(name: str) -> bool:
    """
    Whether it is a `require_<tag>` command, which chooses among the devices that `request_<tag>` asks for.
    """
    lower = name.lower()
    return lower not in _KNOWN and _REQUIRE.fullmatch(lower) is not None


def _meant(tag: str) -> str | None:
    """
    The common resource whose name has a letter left out, doubled or in the wrong place.

    Another letter makes another name: TPUs are not a typing error.
    """
    for right in _OFTEN:
        changed = {right[:at] + right[at + 1 :] for at in range(len(right))}
        changed |= {right[:at] + right[at : at + 1] + right[at:] for at in range(len(right))}
        if tag != right and (tag in changed or sorted(tag) == sorted(right)):
            return right
    return None


def is_known(name: str) -> bool:
    """Whether an assignment to this name is carried out by itself, without being used as a macro."""
    lower = name.lower()
    return (
        lower in _KNOWN
        or lower.startswith(CUSTOM)
        or lower.endswith(PORT)
        or OAUTH.fullmatch(lower) is not None
        or resource_tag(lower) is not None
        or is_choice(lower)
    )


def may_be_left_out(name: str) -> bool:
    """
    Whether a description means the same without an assignment to this name, which is not carried out.

    What HTCondor does not know either is a macro that nothing uses.
    """
    return name.lower() not in NOT_YET


def complaint(name: str, macros: Iterable[str]) -> str:
    """
    The sentence that refuses an unknown command; `macros` are names that the description uses as `$(name)`.
    """
    lower = name.lower()
    if lower in NOT_YET:
        instead = _INSTEAD.get(lower, "remove the line")
        return f"the command '{name}' of HTCondor is not carried out by this version of Kettle; {instead}"
    if lower.startswith("require_"):
        return f"'{name}' cannot choose: these have no properties of their own; say it in requirements"
    match = _RESOURCE.fullmatch(lower)
    meant = _meant(match[1]) if match is not None else None
    close = f"request_{meant}" if meant is not None else nearest(lower, (*macros, *NAMES), likeness=0.7)
    hint = f"did you mean '{close}'?" if close else f"to use it as a macro, write $({name}) somewhere"
    return f"'{name}' is not a submit command; {hint}"
