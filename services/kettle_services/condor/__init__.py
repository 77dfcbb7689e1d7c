"""
The condor_* commands: what programs written for HTCondor run, with the words, the texts and the exit codes they expect.

Owns nothing and decides nothing.  A command asks a service once and ends, so it loads little: see
docs/decisions/0056-commands-of-htcondor.md.

    start           from a launcher to a command, and what becomes of its errors
    commands/       one module per command, or per family of commands
    arguments/      how what was typed is understood: options, jobs, machines and hosts
    connections/    the client that the commands ask through, and the way into jobs that run
    printing/       -autoformat, -long, print formats, and the tables of condor_q, condor_status and condor_userprio
    watch/          where jobs are that condor_watch_q watches, and the picture of that
    python/         the modules that programs import as `htcondor2`, `htcondor`, `classad2` and `classad`
    match_analysis  condor_q -better-analyze
    configuration   what these commands say of themselves, and knobs that nobody set
    launchers       the files that a shell finds; `kettle condor-env` writes them
    condor_env      `kettle condor-env` itself
"""
