"""
What condor_submit_dag does before it submits: its options, and the description of the job that runs a DAG.

    options      the options of condor_submit_dag and condor_dagman, as a table and as a value
    command_line the words of a command line into that value
    names        the files beside a DAG file
    description  the submit description of the job that runs a DAG
    loading      the DAG that the options name, with its rescue file
    preparing    looks at the files that are there, and writes that description
"""
