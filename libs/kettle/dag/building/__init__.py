"""
Commands into the value of a DAG.

    options      how files are read
    scope        one file's own names: nodes, splices, pins, descriptions
    lookup       names in a scope
    drafts       the nodes, edges and settings that have been said so far
    node_making  lines that make nodes
    modifying    what a command changes of one node
    ordering     who waits for whom
    settings     what is said of the DAG as a whole
    builder      each command carried out; files within files
    parser       the entry: the files of one command line
"""
