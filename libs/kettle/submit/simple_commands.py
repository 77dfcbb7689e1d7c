"""
Commands that become one attribute and nothing else: the service that uses it does so later.

    text        is kept as it is, without a pair of quotes around it
    verbatim    is kept with its quotes
    number      is known when the job is submitted
    truth       true or false
    expression  is evaluated by the schedd, the startd or the starter
"""

from collections.abc import Callable, Mapping
from typing import Final, Literal

from kettle.jobs.submitted_on_hold import SUBMITTED_ON_HOLD
from kettle.submit.errors import PlacelessError
from kettle.submit.expressions import boolean, integer, scalar, unquoted
from kettle.submit.lookup import Lookup, Setting, flag, is_settled, placed
from kettle.transfer.file_lists import leaves
from kettle_wire.ads.types import Ad, Scalar

Kind = Literal["text", "verbatim", "number", "truth", "expression"]

PLAIN: Final[Mapping[str, tuple[str, Kind]]] = {
    "batch_id": ("JobBatchId", "text"),
    "batch_extra_submit_args": ("BatchExtraSubmitArgs", "text"),
    "batch_name": ("JobBatchName", "text"),
    "batch_project": ("BatchProject", "text"),
    "batch_queue": ("BatchQueue", "text"),
    "batch_runtime": ("BatchRuntime", "number"),
    "description": ("JobDescription", "verbatim"),
    "erase_output_and_error_on_restart": ("EraseOutputAndErrorOnRestart", "truth"),
    "dag_node_name": ("DAGNodeName", "text"),
    "grid_resource": ("GridResource", "text"),
    "hook_keyword": ("HookKeyword", "text"),
    "interactive": ("InteractiveJob", "truth"),
    "job_machine_attrs": ("JobMachineAttrs", "text"),
    "job_machine_attrs_history_length": ("JobMachineAttrsHistoryLength", "number"),
    "jobset": ("JobSetName", "text"),
    "keep_claim_idle": ("KeepClaimIdle", "expression"),
    "manifest": ("ManifestDesired", "truth"),
    "match_list_length": ("LastMatchListLength", "number"),
    "next_job_start_delay": ("NextJobStartDelay", "expression"),
    "noop_job": ("IsNoopJob", "expression"),
    "noop_job_exit_code": ("NoopJobExitCode", "expression"),
    "noop_job_exit_signal": ("NoopJobExitSignal", "expression"),
    "project_name": ("ProjectName", "text"),
    "remote_initialdir": ("RemoteIwd", "text"),
    "run_as_owner": ("RunAsOwner", "truth"),
    "skip_if_dataflow": ("SkipIfDataflow", "truth"),
    "stack_size": ("StackSize", "number"),
    "starter_debug": ("JobStarterDebug", "text"),
    "want_io_proxy": ("WantIOProxy", "truth"),
    "want_pool_access": ("WantPoolAccess", "truth"),
}
"""Command -> attribute, and what its value is."""

_AT_LEAST: Final[Mapping[str, int]] = {
    "job_machine_attrs_history_length": 0,
    "match_list_length": 0,
    "stack_size": 1,
}

_READ: Final[Mapping[Kind, Callable[[str, str], Scalar]]] = {
    "text": lambda text, _: unquoted(text),
    "verbatim": lambda text, _: text,
    "number": integer,
    "truth": boolean,
    "expression": lambda text, _: scalar(text),
}


def plain(lookup: Lookup) -> Ad:
    """All of them."""
    ad: Ad = {}
    for name, (attribute, kind) in PLAIN.items():
        if given := lookup.get(name):
            ad[attribute] = _value(given, name, kind)
    if place := lookup.get("manifest_dir"):
        ad["ManifestDir"] = _inside(place)
    if log := lookup.get("starter_log"):
        ad["JobStarterLog"] = str(lookup.iwd() / unquoted(log.text))
        ad.setdefault("JobStarterDebug", True)
    return ad


def _value(given: Setting, name: str, kind: Kind) -> Scalar:
    try:
        value = _READ[kind](given.text, name)
    except PlacelessError as error:
        raise placed(given, error) from error
    least = _AT_LEAST.get(name)
    if least is not None and isinstance(value, int) and value < least:
        given.refuse(f"{name} must be {least} or more, not {given.text}")
    return value


def _inside(given: Setting) -> str:
    name = unquoted(given.text)
    if is_settled(name) and leaves(name):
        given.refuse(
            f"the directory {name} leads out of the sandbox; name it relative to where the job starts"
        )
    return name


def on_hold(lookup: Lookup) -> Ad:
    """Jobs that wait for their owner from the first moment on."""
    return dict(SUBMITTED_ON_HOLD) if flag(lookup, "hold", default=False) else {}
