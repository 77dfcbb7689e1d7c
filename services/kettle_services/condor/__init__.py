"""
The condor_* commands: what programs written for HTCondor run, with the words, the texts and the exit codes they expect.

Owns nothing and decides nothing.  A command asks a service once and ends, so it loads little: see
docs/decisions/0056-commands-of-htcondor.md.

    start        from a launcher to a command, and what becomes of its errors
    commands/    one module per command, or per family of commands
    words        how what was typed is understood
    asking       a question or a command, repeated until there is an answer
    patience     the same with an event loop, when anything is out of the ordinary
    looking      into jobs that run
    selecting    which jobs are meant
    machines     which machines and hosts are meant
    asked        what several commands take to say how ads are printed
    values       what an attribute or an expression of an ad comes to
    columns      -autoformat and -format
    ads          -long, -json and -xml
    queue_table  the tables of condor_q
    analysis     condor_q -better-analyze
    priority_table  the tables and ads of condor_userprio
    configuration   what these commands say of themselves, and knobs that nobody set
    launchers    the files that a shell finds; `kettle condor-env` writes them
    condor_env   `kettle condor-env` itself
"""
