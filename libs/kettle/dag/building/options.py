"""How DAG files are read."""

from typing import Final

import msgspec


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How files are read; each is a setting of HTCondor or an option of condor_submit_dag."""

    use_dag_directory: bool = False
    """`-usedagdir`: paths in a file are relative to the file's own directory."""
    allow_any_names: bool = False
    """`DAGMAN_ALLOW_ANY_NODE_NAME_CHARACTERS`: names of nodes may have a `+`."""
    append_variables: bool = False
    """`DAGMAN_DEFAULT_APPEND_VARS`: VARS that do not say it are set after the submit description is read."""
    munge_names: bool = True
    """`DAGMAN_MUNGE_NODE_NAMES`: of several files, the number of each is in front of its names."""


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """How much is read of texts that anybody may have written; None: all."""

    faults: int | None = None
    changes: int | None = None
    """Of nodes, by commands such as VARS: a short line with ALL_NODES changes as many as there are."""


UNBOUNDED: Final = Bounds()
