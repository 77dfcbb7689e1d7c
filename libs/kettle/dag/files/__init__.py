"""
What other programs read of a workflow: files in the forms of DAGMan, and the attributes of the DAG job.

    progress       how far it is, folded from the events
    dagman_out     `.dagman.out`, and `jobstate_log`: logs, a line for what happens
    node_log       what the job event log of the nodes says that no job does
    node_status, dot, metrics, rescue: what is written of a moment
    attributes     what the ad of the DAG job says
    dag_files      all of them on a disk, each event once
"""
