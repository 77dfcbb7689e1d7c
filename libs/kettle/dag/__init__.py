"""
DAG files: their language, what they say as one immutable value, and what can be told about it.

    dag = parse(["diamond.dag"], read)            the first fault raises a `DagError`
    dag, faults = check(["diamond.dag"], read)    all faults at once

Nothing here reads a clock or a file: `read` gives the text of a file that is named by its path relative to the directory
of the submission, and `kettle.dag.disk` has the one that reads from a disk.

    structure    the value: nodes by their index, and everything that is said of them
    edges        who waits for whom, compact; joins of all-to-all lines are hidden in it
    language     lines and words, and the commands, one form for each
    building     commands into the value: scopes, splices, included files
    graph        cycles, levels, critical path
    disk         DAG files from a disk
    files        what others read of a DAG that runs
    outside      what DAG files name: submit descriptions, scripts, DAGs within
    submission   the job that runs a DAG: its options and its description
"""
