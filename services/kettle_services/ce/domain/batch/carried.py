"""
What a batch system runs for a job whose files travel over HTTPS: it fetches them, runs the job's script, and sends back what that leaves.

The nodes need `curl` and `tar`, and a directory of their own; nothing is shared with anybody.
"""

import shlex
from typing import Final

import msgspec

from kettle_services.ce.domain.batch.script import NOT_OURS, OURS, awaiting

JOB: Final = f"{OURS}/job"
"""The job's script, which comes with its files."""
PAYLOADS: Final = "payloads"
"""Where, beside its files, a pilot says what it runs for others."""
NUMBER: Final = "Kettle-Batch-Id"
"""The header in which a node says which job of the batch system it runs."""
_NOT_CARRIED: Final = 73
"""The exit status of a job whose files could not be fetched or sent."""
_TRIES: Final = 12
"""So often a transfer is tried, ten minutes in all."""
_SCRIPT: Final = """\
umask 077
sandbox={sandbox}
number=${{SLURM_JOB_ID:-${{PBS_JOBID:-${{LSB_JOBID:-${{JOB_ID:-${{KETTLE_BATCH_ID:-$$}}}}}}}}}}
mkdir -p "$sandbox/{ours}" && cd "$sandbox" || exit {not_carried}
cat >{ours}/authority <<'{end}'
{authority}
{end}
carry() {{
    tries=0
    while :; do
        said=$(curl --silent --show-error --write-out '%{{http_code}}' --config - "$@" <<'{end}'
header = "Authorization: Bearer {token}"
header = "Expect:"
{trust}
{end}
)
        case $said in 2??) return 0 ;; 4??) return 1 ;; esac
        tries=$((tries + 1))
        [ "$tries" -lt {tries} ] || return 1
        sleep $((tries * tries))
    done
}}
if ! carry --output {ours}/in --header "{number}: $number" {url}/in; then
    cd / && rm -rf "$sandbox"
    [ "$said" != 409 ] || exit {not_ours}
    exit {not_carried}
fi
tar -xzf {ours}/in && rm -f {ours}/in && : >{ours}/before || exit {not_carried}
export KETTLE_JOB_PAYLOADS_URL={url}/{payloads} KETTLE_JOB_PAYLOADS_TOKEN={payloads_token}
{export_authority}
sh {job} </dev/null &
{awaiting}
trap '' TERM
cd "$sandbox" || exit {not_carried}
{{
    [ ! -e {ours}/end ] || printf '%s\\0' {ours}/end
    {listing}
}} | tar -czhf {ours}/out --null -T -
carry --output /dev/null --upload-file {ours}/out {url}/out || exit {not_carried}
cd / && rm -rf "$sandbox"
exit "$status"
"""


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """By which way the files of one job come and go."""

    url: str
    token: str
    """It opens this job's files and no others, as long as the job is there."""
    payloads_token: str
    """It lets the job say what it runs for others, and opens no file."""
    authority: str = ""
    """The certificate, in PEM, of who vouches for the server; empty: one that the nodes trust anyway."""


def carried(sandbox: str, way: Way, listing: str) -> str:
    """
    The script, without directives; `listing` prints the names of the results, each with a zero byte behind it.
    """
    return _SCRIPT.format(
        sandbox=shlex.quote(sandbox),
        ours=OURS,
        job=JOB,
        awaiting=awaiting("/dev/null"),
        not_ours=NOT_OURS,
        not_carried=_NOT_CARRIED,
        tries=_TRIES,
        end=f"end of {way.token[:16]}",
        authority=way.authority.strip(),
        trust=f'cacert = "{OURS}/authority"' if way.authority else "",
        token=way.token,
        payloads=PAYLOADS,
        payloads_token=way.payloads_token,
        export_authority=f'export KETTLE_JOB_PAYLOADS_CA="$sandbox/{OURS}/authority"'
        if way.authority
        else "",
        number=NUMBER,
        url=shlex.quote(way.url),
        listing=listing,
    )
