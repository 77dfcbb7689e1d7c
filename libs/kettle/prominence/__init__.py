"""
PROMINENCE: documents of jobs and workflows, checked, counted, expanded and made into job ads; all of it is pure.

    job = read_job(text)               raises DocumentRefused with every fault
    workflow = read_workflow(text)
"""
