"""
Makes `docs/reference/documents.md`: what the documents of jobs and workflows may say, by their structs.

`docs/generate.py` writes the page; by itself this module only makes its text.
"""

from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

import msgspec

from kettle.schema_generation.field_descriptions import meanings
from kettle.schema_generation.json_schema import structs
from kettle_wire.prominence.dry_run import DryRun
from kettle_wire.prominence.job import Job
from kettle_wire.prominence.workflow import Workflow

_TITLES: Final = (("A job", Job), ("A workflow", Workflow), ("A dry run", DryRun))
_NAMES: Final = {
    "str": "text",
    "int": "whole number",
    "float": "number",
    "Decimal": "number",
    "bool": "true or false",
    "bytes": "base64",
    "NoneType": "null",
    "Any": "anything",
}


def documents_page() -> str:
    """The page, below its first line."""
    seen: set[type] = set()
    parts = [_HEAD]
    for title, root in _TITLES:
        parts.append(f"\n## {title}\n")
        for kind in _ordered(root):
            if kind not in seen:
                seen.add(kind)
                parts.append(_section(kind, heading=kind is not root))
    return "".join(parts)


def _ordered(root: type[msgspec.Struct]) -> list[type[msgspec.Struct]]:
    """A document, then its parts in the order of their names."""
    return [root, *sorted(set(structs([root])) - {root}, key=lambda kind: kind.__name__)]


def _section(kind: type[msgspec.Struct], *, heading: bool) -> str:
    said = meanings(kind)
    about = " ".join((kind.__doc__ or "").split())
    tag = kind.__struct_config__.tag
    if tag is not None:
        about = f"{about} Its `type` is `{tag}`."
    rows = [
        f"| `{field.encode_name}` | {_type(field.type)} | {_default(field)} | {said.get(field.name, '')} |\n"
        for field in msgspec.structs.fields(kind)
    ]
    title = f"\n### {kind.__name__}\n" if heading else ""
    return f"{title}\n{about}\n\n| field | type | if absent | meaning |\n|---|---|---|---|\n{''.join(rows)}"


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "is a fault"
    value = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    return (
        ""
        if value is None or isinstance(value, msgspec.Struct)
        else f"`{msgspec.json.encode(value).decode()}`"
    )


def _type(kind: Any) -> str:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        limits = [limit for meta in inner[1:] for limit in _limits(meta)]
        return ", ".join([_type(inner[0]), *limits])
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in inner)
    if origin is list:
        return f"list of {_type(inner[0])}"
    if origin is dict:
        return f"object of {_type(inner[1])}"
    if origin in {Union, UnionType}:
        return " or ".join(dict.fromkeys(_type(part) for part in inner if part is not type(None)))
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return f"[{kind.__name__}](#{kind.__name__.lower()})"
    return _NAMES[kind.__name__]


def _limits(meta: msgspec.Meta) -> list[str]:
    found = [
        f"{sign} {value}"
        for sign, value in ((">", meta.gt), ("≥", meta.ge), ("≤", meta.le))
        if value is not None
    ]
    if meta.min_length is not None and meta.min_length == meta.max_length:
        found.append(f"exactly {meta.min_length}")
    elif meta.max_length is not None:
        found.append(f"at most {meta.max_length}")
    if meta.description is not None:
        found.append(meta.description)
    return found


_HEAD: Final = """\
# Documents of jobs and workflows

What the JSON documents of [PROMINENCE](https://prominence-eosc.github.io/docs/) may say here.
`kettle workflow check FILE` tells everything that is wrong with one, and what it would be.
Their JSON Schemas are [the job's](../../schemas/json/documents/job.json) and [the workflow's](../../schemas/json/documents/workflow.json).

A name that is not here is refused.
All faults of a document are told at once, each with a JSON pointer.

**Amounts.**
1 GB of memory is 1000 MiB and may be a fraction; 1 GB of disk is 1 GiB.
Numbers of factories are exactly what is written: 0 to 1 by 0.1 are eleven values, and whole numbers are written without a point.

**Parameters.**
`$x` and `${x}` stand for a parameter in `cmd`, in URLs of artifacts and in names of outputs; a longer name is another parameter, and what is none stays.
A command is split into words before values are put in, so that a value is always part of one word, whatever is in it.
Each task has `PROMINENCE_PARAMETER_x` in its environment.

**Names.**
A job of a workflow is shown as `WORKFLOW/JOB`, an instance of a factory as `WORKFLOW/JOB/INDEX` from 0 on.
Dependencies mean exactly the job of that name; where it has a factory, all of its instances.

**Placement** is about the attributes `Site` and `Region` of slots, which an administrator [sets](../how-to/set-a-machines-policy.md); offers of elastic pools say them as `site` and `region`.

**Elastic pools** make machines for a job whose `autoScalingType` is `shared` or `dedicated` ([how](../how-to/grow-and-shrink-the-pool.md)). Such a machine is given up for another when the job has waited for it for `maximumIdleTimePerResource`, and none is made that would not be ready before `maximumTimeInQueue` is over. It has to live for three times `walltime`, which is when a job is ended in any case: without a `walltime` these are 36 hours, more than pools of workers live if their file says nothing (`life`).

**Labels** are attributes `ProminenceLabel_<name>` of the job's ad, and its name is `ProminenceName`.

**Several nodes** (`nodes`) run MPI tasks: `cmd` is the program of each rank, and `procsPerNode` how many a node has.
All of them have the same image; tasks of other types run on node 0 alone, with the results and the output.
[How MPI programs run](../how-to/run-mpi-programs.md).

**As many nodes as there are**: with `totalCpusRange` a job has as many nodes of `cpus` CPUs each as are free when it is matched, within the range; all of them begin together.

**Images of registries** may want a login (`imagePullCredential`). Its token is stored among [the credentials of who sends it](../how-to/store-credentials-for-jobs.md), for the service `image_registry`, and is in no description, ad, event or file of a job: only the machine that pulls the image has it, for as long as it does. `"token": "***"` is the one that was sent before for this `username` of this registry. An image that was pulled with a login runs in no job that the registry does not give it to.

**SCIF images** have several applications: `app` names the one in which `cmd` runs, with its variables and its directories; without `cmd` it is what the application itself runs. For images with `/bin/sh`.

**Not carried out**, and refused with its place: mounted storage ([why](../explanation/workflows-and-their-tests.md#what-is-refused-and-why)), `runSerialTasksOnAllNodes` and ranges of CPUs of each of several nodes.
"""
