"""
The environment of a job: nothing of ours but what HTCondor's jobs rely on, what the machine's owner gives to every job, and
what its own owner asked for.
"""

import posixpath
import re
from collections.abc import Mapping
from typing import Final

from kettle.execution.attempts.job_spec import JobSpec
from kettle.execution.job_environment.helper_programs import INSIDE, directory
from kettle.execution.job_environment.job_ad import JobAd
from kettle.execution.job_environment.node import node_variables
from kettle.execution.job_environment.site_caches import cache_variables
from kettle.execution.processes.ancestry import MARK
from kettle.jobs.image_registries import SERVICE as IMAGE_REGISTRY
from kettle.jobs.match_references import SCRATCH
from kettle.jobs.needed_tokens import DIRECTORY, SERVICES, bearer, file_of, needed_tokens
from kettle.jobs.pool_access import ATTRIBUTE
from kettle.jobs.quoting import environment_of, split_environment_v1, split_v2
from kettle_wire.session_attributes import FILES
from kettle_wire.session_attributes import SERVICES as SERVICES_PUBLISHED

PATH: Final = "/usr/local/bin:/usr/bin:/bin"

_THREADS: Final = (
    "CUBACORES", "GOMAXPROCS", "JULIA_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "OMP_NUM_THREADS",
    "OMP_THREAD_LIMIT", "OPENBLAS_NUM_THREADS", "PYTHON_CPU_COUNT", "ROOT_MAX_THREADS",
    "TF_LOOP_PARALLEL_ITERATIONS", "TF_NUM_THREADS",
)  # fmt: skip
"""What programs ask for the number of threads that they may use."""

_ORDINAL: Final = re.compile(r"^(CUDA|OCL)(?=[0-9]+$)")
"""Of ids that are nothing but the device's number, the libraries want the number."""

_NO_GPU: Final = "10000"
"""
The number of a device that no machine has, as HTCondor hides GPUs; an empty list would hide none from some programs.
"""


def job_environment(
    spec: JobSpec, job: JobAd, sandbox: str, ours: Mapping[str, str], *, contained: bool = False
) -> dict[str, str]:
    """
    The whole environment; `ours` is that of this process, of which only the pool's mark is passed on.

    Raises:
        QuotingError: the job's own part is not well formed.
    """
    helpers = f"{sandbox}/{INSIDE}" if contained else directory(spec.execute)
    iwd = sandbox if job.transfers else job.text("Iwd") or "/"
    scratch = {"_CONDOR_SCRATCH_DIR": sandbox, "_CONDOR_JOB_IWD": iwd}
    return {
        "PATH": f"{PATH}:{helpers}",
        "HOME": spec.home or sandbox,  # an account that exists only for its slot has no other
        **dict.fromkeys(("TMPDIR", "TMP", "TEMP"), sandbox),
        **dict.fromkeys(_THREADS, str(spec.cpus)),
        "BATCH_SYSTEM": "HTCondor",
        **_sites(spec, helpers),
        **(cache_variables(spec.data_rules, sandbox) if spec.data_rules else {}),
        **_gpus(spec),
        **_tokens(job, sandbox),
        **_services(spec, job),
        **node_variables(job, sandbox),
        **_own(job, sandbox),
        **_proxy(job, sandbox, iwd),
        **scratch,
        "_CONDOR_SLOT": spec.slot.partition("@")[0],
        "_CONDOR_JOB_AD": f"{sandbox}/.job.ad",
        "_CONDOR_MACHINE_AD": f"{sandbox}/.machine.ad",
        "_CONDOR_JOB_PIDS": "",
        "_CONDOR_CHIRP_CONFIG": f"{sandbox}/.chirp.config",
        "_CONDOR_BIN": helpers,
        **{f"_CONDOR_Assigned{tag}": ",".join(ids) for tag, ids in spec.devices.items() if ids},
        **_way_to_the_pool(spec, job, f"{sandbox}/.chirp.config"),
        **{name: value for name, value in ours.items() if name.startswith(MARK)},
    }


def _sites(spec: JobSpec, helpers: str) -> dict[str, str]:
    """What the machine's owner gives to every job; a PATH of his does not hide the helper programs."""
    if path := spec.environment.get("PATH"):
        return {**spec.environment, "PATH": f"{path}:{helpers}"}
    return spec.environment


def _tokens(job: JobAd, sandbox: str) -> dict[str, str]:
    """Where the job's tokens are; an owner who names a file of his own knows better."""
    where = f"{sandbox}/{DIRECTORY}"
    if not job.given(SERVICES):
        return {"_CONDOR_CREDS": where} if job.given(FILES) else {}
    found = [needed for needed in needed_tokens(job.whole) if needed.service != IMAGE_REGISTRY]
    return {"_CONDOR_CREDS": where, "BEARER_TOKEN_FILE": f"{where}/{file_of(bearer(found))}"} if found else {}


def _services(spec: JobSpec, job: JobAd) -> dict[str, str]:
    """Under which path of the gateway people see what the job publishes, for servers that have to know."""
    return {"KETTLE_SERVICES_PREFIX": f"/jobs/{spec.job}"} if job.given(SERVICES_PUBLISHED) else {}


def _way_to_the_pool(spec: JobSpec, job: JobAd, config: str) -> dict[str, str]:
    """
    By which the pool's commands find it from within the job, if it may: see `kettle.bus.job_connection`.
    """
    if not (spec.chirp.commands and job.flag(ATTRIBUTE, default=False)):
        return {}
    return {"KETTLE_NATS_URL": f"job:{config}", "KETTLE_USER": job.text("Owner") or ""}


def _proxy(job: JobAd, sandbox: str, iwd: str) -> dict[str, str]:
    """Where the job's proxy certificate is here; what `getenv` took along says where its submitter's is."""
    if not job.proxy:
        return {}
    return {"X509_USER_PROXY": posixpath.join(sandbox if job.transfers else iwd, job.proxy)}


def _gpus(spec: JobSpec) -> dict[str, str]:
    """Which GPUs the job's programs may see; on a machine that has some, a job without one sees none."""
    ids = spec.devices.get("GPUs")
    if ids is None:
        return {}
    shown = ",".join(_ORDINAL.sub("", each) for each in ids)
    return {
        "CUDA_VISIBLE_DEVICES": shown or _NO_GPU,
        "GPU_DEVICE_ORDINAL": shown or _NO_GPU,
        "NVIDIA_VISIBLE_DEVICES": shown or "void",
    }


def _own(job: JobAd, sandbox: str) -> dict[str, str]:
    """
    What its submitter gave, with the directory where it says so; a job that another job submitted has not that one's
    way to the pool.
    """
    if (text := job.text("Environment")) is not None:
        entries = split_v2(text)
    else:
        entries = split_environment_v1(job.text("Env") or "", job.text("EnvDelim") or ";")
    given = environment_of(entries)
    if given.get("KETTLE_NATS_URL", "").startswith("job:"):
        del given["KETTLE_NATS_URL"]
        given.pop("KETTLE_USER", None)
    return {name: value.replace(SCRATCH, sandbox) for name, value in given.items()}
