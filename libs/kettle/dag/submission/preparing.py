"""Looks at the files that are there, and writes the description of the job that runs a DAG."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from kettle.dag.faults import DagError
from kettle.dag.files import rescue
from kettle.dag.structure import Dag, Node, NodeKind
from kettle.dag.submission import description
from kettle.dag.submission.command_line import OptionError, parsed
from kettle.dag.submission.loading import Knob, flag, load, newest_rescue
from kettle.dag.submission.names import FileNames, file_names
from kettle.dag.submission.options import SubmitDagOptions
from kettle.jobs.quoting import QuotingError, split_v2, unquote_v2

_ARGUMENTS: Final = re.compile(r"arguments\s*=\s*(.*)", re.IGNORECASE)
_LIMITS: Final = ("max_idle", "max_jobs", "max_pre", "max_post", "max_hold")


class PreparationError(Exception):
    """Nothing was written or submitted; the message says why, in one or more lines."""


class Site(msgspec.Struct, frozen=True):
    """Where a DAG is submitted."""

    directory: Path
    environ: Mapping[str, str]
    knob: Knob
    """The value of a setting of HTCondor."""
    version: str
    """How condor_submit_dag calls its own version."""
    dagman: str
    """The program that runs DAGs; empty if there is none."""


class Prepared(msgspec.Struct, frozen=True):
    """What has been done."""

    names: FileNames
    messages: tuple[str, ...]


def prepare(options: SubmitDagOptions, site: Site) -> Prepared:
    """
    Write the description for the DAG files of these options, and, if it is wanted, those of the DAGs within.

    Raises `PreparationError`.
    """
    if not options.dag_files:
        raise PreparationError("ERROR: no dag file specified; aborting.")
    if options.run_valgrind:
        raise PreparationError(
            "ERROR: -Valgrind examines a program that was compiled, which this condor_dagman is not"
        )
    options = replace(options, dagman_path=options.dagman_path or site.dagman)
    if not options.dagman_path:
        raise PreparationError("ERROR: Failed to locate condor_dagman executable in PATH")
    try:
        _refuse_missing_rescue(options, site)
        dag = load(replace(options, auto_rescue=0) if options.force else options, site.directory, site.knob)
        options = _with_words_of_files(options, dag, site)
        messages = list(map(str, dag.warnings))
        if options.recurse:
            messages += _recursion(options, dag, site)
        names = file_names(options)
        messages += _make_room(options, names, site)
        if options.update_submit:
            options = _with_old_limits(options, site.directory / names.submit_file)
        _write(options, names, dag, site)
    except (DagError, OptionError, QuotingError) as error:
        raise PreparationError(f"ERROR: {error}") from error
    except OSError as error:
        raise PreparationError(f"ERROR: {error.filename}: {error.strerror}") from error
    return Prepared(names, tuple(messages))


def prepare_within(node: Node, options: SubmitDagOptions, site: Site, *, is_retry: bool = False) -> Prepared:
    """
    Write the description of the DAG that a SUBDAG node is, with the options of the outer one that hold for it, too.

    A retry goes on from the rescue file of the attempt before, also where `-f` is said.
    Raises `PreparationError`.
    """
    inner = replace(
        parsed(description.handed_down(options)),
        dag_files=[node.submit],
        update_submit=True,
        force=options.force and not is_retry,
        priority=options.priority + node.priority,
    )
    return prepare(inner, replace(site, directory=site.directory / node.directory))


def _with_words_of_files(options: SubmitDagOptions, dag: Dag, site: Site) -> SubmitDagOptions:
    """The options with what CONFIG and ENV say, and with what is configured."""
    config = options.config_file
    if config:
        config = os.path.normpath(site.directory / config)
    if dag.job.config:
        named = os.path.normpath(site.directory / dag.job.config)
        if config and config != named:
            raise OptionError(f"Conflicting DAGMan config files specified: {config} and {named}")
        config = named
    if config and not os.access(config, os.R_OK):
        raise OptionError(f"Can't read DAGMan config file: {config}")
    automatic = options.auto_rescue
    if automatic is None:
        automatic = int(flag(site.knob, "DAGMAN_AUTO_RESCUE", default=True))
    return replace(
        options,
        config_file=config,
        auto_rescue=automatic,
        append_file=options.append_file or site.knob("DAGMAN_INSERT_SUB_FILE") or "",
        add_to_env=[*options.add_to_env, *dag.job.environment],
        get_from_env=[*options.get_from_env, *dag.job.inherited],
    )


def _recursion(options: SubmitDagOptions, dag: Dag, site: Site) -> Iterator[str]:
    """Write the descriptions of DAGs within this one, with the options that hold for them, too."""
    for node in dag.nodes:
        if node.kind is NodeKind.SUBDAG:
            yield f"Recursive submission of {node.submit} for node {node.name}"
            yield from prepare_within(node, options, site).messages


def _refuse_missing_rescue(options: SubmitDagOptions, site: Site) -> None:
    number = options.do_rescue_from
    if number < 0:
        raise OptionError("-DoRescueFrom value must be non-negative; aborting.")
    wanted = rescue.rescue_name(site.directory / options.primary, number, multi=options.is_multi)
    if number and not wanted.exists():
        raise OptionError(f"-dorescuefrom {number} specified, but rescue DAG file {wanted} does not exist!")


def _make_room(options: SubmitDagOptions, names: FileNames, site: Site) -> Iterator[str]:
    """Refuse to overwrite what an earlier submission left, unless somebody wants it."""
    primary = site.directory / options.primary
    (site.directory / f"{options.primary}.halt").unlink(missing_ok=True)
    if options.force:
        for name in names.own:
            (site.directory / name).unlink(missing_ok=True)
        rescue.set_aside(primary, multi=options.is_multi, after=options.do_rescue_from)
    number = newest_rescue(options, site.directory, site.knob)
    if number:
        yield f"Running rescue DAG {number}"
    again = (
        number or options.do_rescue_from or options.rescue_file or options.save_file or options.update_submit
    )
    present = [] if again else [name for name in names.own if (site.directory / name).exists()]
    if present:
        raise OptionError(
            "\nERROR: ".join(f'"{name}" already exists.' for name in present)
            + "\n\nSome file(s) needed by condor_dagman already exist. Either:\n- Rename them\n"
            '- Use the "-f" option to force them to be overwritten\n\tor\n'
            '- Use the "-update_submit" option to update the submit file and continue.'
        )


def _with_old_limits(options: SubmitDagOptions, path: Path) -> SubmitDagOptions:
    """The options with the limits that the old description has, as far as none are said now."""
    if not path.exists():
        return options
    found = [
        match[1] for line in path.read_text().splitlines() if (match := _ARGUMENTS.fullmatch(line.strip()))
    ]
    words = [word for text in found for word in split_v2(unquote_v2(text))]
    old = parsed(_limits_among(words))
    kept = {name: getattr(old, name) for name in _LIMITS if getattr(options, name) is None}
    return replace(options, **kept)


def _limits_among(words: Sequence[str]) -> list[str]:
    return [
        each
        for at, word in enumerate(words)
        if word.lower().startswith("-max")
        for each in (word, *words[at + 1 : at + 2])
    ]


def _write(options: SubmitDagOptions, names: FileNames, dag: Dag, site: Site) -> None:
    inserted: list[str] = []
    if options.append_file:
        text = (site.directory / options.append_file).read_text(encoding="utf-8", errors="surrogateescape")
        inserted = [line.strip() for line in text.splitlines()]
    lines = description.lines(
        options,
        names,
        version=site.version,
        environ=site.environ,
        knob=site.knob,
        inserted=inserted,
        attributes=dag.job.attributes,
    )
    text = "".join(f"{line}\n" for line in lines)
    (site.directory / names.submit_file).write_text(text, encoding="utf-8", errors="surrogateescape")
