"""The entry: the files of one command line into a DAG."""

from collections.abc import Callable, Sequence

from kettle.dag.building.builder import Builder
from kettle.dag.building.options import UNBOUNDED, Bounds, Options
from kettle.dag.building.scope import Scope
from kettle.dag.edges import EdgeCollector
from kettle.dag.faults import DagError, Fault, Faults, PlacelessFault
from kettle.dag.structure import Dag

Read = Callable[[str], str]
_DEFAULT = Options()


def parse(paths: Sequence[str], read: Read, options: Options = _DEFAULT, *, partial: str = "") -> Dag:
    """
    The DAG that the files make together.

    `read`: the text of a file, by its path relative to the directory of the submission; raises OSError or ValueError.
    `partial`: a rescue or save file, whose commands come last; in it names are as they are in the whole DAG.
    Raises `DagError` for the first fault.
    """
    return _built(paths, read, options, Faults(stop=True), partial)


def check(
    paths: Sequence[str],
    read: Read,
    options: Options = _DEFAULT,
    *,
    partial: str = "",
    bounds: Bounds = UNBOUNDED,
) -> tuple[Dag, Sequence[Fault]]:
    """
    What could be understood of the files, and all that is wrong with them, by files and lines.

    `bounds` are for texts that anybody sends, of which a few could keep a service at work for days: that they are reached is the last
    fault, and then nothing is understood.
    """
    faults = Faults(stop=False, most=bounds.faults)
    try:
        dag = _built(paths, read, options, faults, partial, bounds)
    except DagError as error:
        nothing = Dag(files=tuple(paths), nodes=(), edges=EdgeCollector().edges(0))
        return nothing, [*faults.found, error.fault]
    places = {file: place for place, file in reversed(list(enumerate(dag.files)))}
    return dag, sorted(faults.found, key=lambda fault: (places.get(fault.file, len(places)), fault.line))


def _built(
    paths: Sequence[str],
    read: Read,
    options: Options,
    faults: Faults,
    partial: str,
    bounds: Bounds = UNBOUNDED,
) -> Dag:
    builder = Builder(read, options, faults, bounds)
    is_munged = len(paths) > 1 and options.munge_names
    common = Scope()
    for number, path in enumerate(paths):
        _read(builder, path, Scope(number=number) if is_munged else common, faults)
    drafts = builder.drafts
    if partial:
        names = {node.name: index for index, node in enumerate(drafts.nodes)}
        ordinary = [index for index, node in enumerate(drafts.nodes) if node.is_ordinary]
        _read(builder, partial, Scope(nodes=names, ordinary=ordinary), faults)
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


def _read(builder: Builder, path: str, scope: Scope, faults: Faults) -> None:
    if scope not in builder.drafts.scopes:
        builder.drafts.scopes.append(scope)
    try:
        builder.file(path, scope)
    except PlacelessFault as fault:
        faults.add(path, 0, str(fault).removeprefix(f"{path} "))  # the place says it
