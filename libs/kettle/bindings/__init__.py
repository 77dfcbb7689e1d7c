"""
HTCondor's Python modules on Kettle: what stands behind the names `htcondor2`, `classad2`, `htcondor` and `classad`.

    values, expressions, ads, reading   classad2: on kettle.classad
    first_classad                       classad: what was different in version 1
    enumerations, errors, versions      their numbers, their exceptions, what version this is
    knobs                               param
    connecting, places                  one connection to each pool for all threads of a program, and which pool
    event_log                           JobEvent, JobEventLog: on kettle.userlog
    notes, descriptions, submitted      Submit, SubmitResult: on kettle.submit
    choosing, histories, schedd         Schedd: jobs by what clients call them, and the past
    collector, daemons, loose           the other daemons, and the functions of no class
    first_schedd                        what was different in version 1

The modules with HTCondor's names are in services/kettle_services/condor/python and hold names only
(docs/decisions/0058-python-bindings.md).
"""
