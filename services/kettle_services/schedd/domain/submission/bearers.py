"""
What who has shown a token may have run on the access point: the process of a DAG whose files are sent, and nothing else.

Jobs there have all that the account of their owner has, a credential without an end too, and a token gives less than that.
"""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from kettle_services.schedd.domain.jobs.universes import universe_at_home
from kettle_wire.ads import Ad, Scalar
from kettle_wire.workflows import BY_TOKEN


def refusal_of_submission(
    asked: tuple[Ad, Sequence[str], Sequence[Sequence[Scalar]]],
    universe: str,
    *,
    owner: str,
    home: Path,
    spool: bool,
) -> str:
    """
    Why a submission with jobs of a universe that runs here is refused to who has shown a token; empty: it is the DAG job.

    `asked`: as it was sent; `home`: the pool's directory; `spool`: its files are sent.
    """
    from kettle.client.connections.pool_file import SYSTEM  # for DAG jobs only
    from kettle.dag.submission.sent_dag_job import difference

    ad, columns, rows = asked
    homes = [str(home), str(Path(SYSTEM, owner))]
    if spool and not columns and len(rows) == 1:
        other = difference(ad, interpreter=sys.executable, homes=homes)
        if not other:
            return ""
        why = f"of the job of a workflow {other} is otherwise"
    else:
        why = "it is not the job of a workflow whose files are sent"
    return (
        f"a token does not let you run jobs of the {universe.lower()} universe, which have all rights of the account {owner} on the access "
        f"point ({why}): submit a vanilla job, send a workflow over HTTP (POST /v2/workflows), or submit it with the account itself"
    )


def refusal_of_files(submitted: tuple[Ad, Sequence[str], Sequence[Sequence[Scalar]]], *, owner: str) -> str:
    """Why who has shown a token may send no files for the jobs of a submission; empty: that may be."""
    universe = universe_at_home(*submitted)
    if not universe or submitted[0].get(BY_TOKEN) is True:
        return ""
    return (
        f"a token does not let you send files for jobs of the {universe.lower()} universe, which have all rights of the account {owner} on "
        "the access point: send them with the account itself"
    )


def may_edit(attributes: Iterable[str]) -> bool:
    """Whether who has shown a token may set these of a job that runs here."""
    from kettle.dag.submission.sent_dag_job import steers_nothing  # for DAG jobs only

    return all(map(steers_nothing, attributes))
