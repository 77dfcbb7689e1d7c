"""
HTCondor's Python modules on Kettle: what stands behind the names `htcondor2`, `classad2`, `htcondor` and `classad`.

    values, expressions, ads, reading   classad2: on kettle.classad
    first_classad                       classad: what was different in version 1
    enumerations                        the enumerations
    errors                              the exceptions
    versions, knobs                     version(), platform(), param
    connecting                          one connection to each pool for all threads of a program
    event_attributes, event_log         JobEvent, JobEventLog: on kettle.userlog
    descriptions, submitted             Submit, SubmitResult: on kettle.submit
    choosing                            from a job_spec to a selection
    schedd, collector, others           the daemons
    first_schedd                        what was different in version 1

The modules with HTCondor's names are in services/kettle/condor/python and hold names only
(docs/decisions/0058-python-bindings.md).
"""
