"""How DAG files are read."""

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
