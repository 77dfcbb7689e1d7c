"""The entry: the files of one command line into a DAG."""

from collections.abc import Callable, Sequence

from kettle.dag.building.builder import Builder
from kettle.dag.building.options import Options
from kettle.dag.building.scope import Scope
from kettle.dag.faults import Fault, Faults, PlacelessFault
from kettle.dag.structure import Dag

_DEFAULT = Options()


def parse(paths: Sequence[str], read: Callable[[str], str], options: Options = _DEFAULT) -> Dag:
    """
    The DAG that the files make together.

    `read`: the text of a file, by its path relative to the directory of the submission; raises OSError or ValueError.
    Raises `DagError` for the first fault.
    """
    return _built(paths, read, options, Faults(stop=True))


def check(
    paths: Sequence[str], read: Callable[[str], str], options: Options = _DEFAULT
) -> tuple[Dag, Sequence[Fault]]:
    """What could be understood of the files, and everything that is wrong with them."""
    faults = Faults(stop=False)
    return _built(paths, read, options, faults), faults.found


def _built(paths: Sequence[str], read: Callable[[str], str], options: Options, faults: Faults) -> Dag:
    builder = Builder(read, options, faults)
    for number, path in enumerate(paths):
        scope = Scope(number=number if len(paths) > 1 and options.munge_names else None)
        builder.drafts.scopes.append(scope)
        try:
            builder.file(path, scope)
        except PlacelessFault as fault:
            faults.add(path, 0, str(fault))
    drafts = builder.drafts
    drafts.describe()
    return Dag(
        files=tuple(drafts.files),
        nodes=tuple(drafts.nodes),
        edges=drafts.collector.edges(len(drafts.nodes)),
        throttles=drafts.throttles,
        splices=tuple(drafts.splices),
        dot=drafts.dot,
        node_status_file=drafts.node_status_file,
        jobstate_log=drafts.jobstate_log,
        job=drafts.job,
        warnings=tuple(faults.warnings),
    )
