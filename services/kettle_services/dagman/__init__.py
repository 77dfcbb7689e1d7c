"""
dagman: the workflows of one access point. It decides which node comes next; the process of the DAG job does it.

Owns      the shard `dagman.<name of the schedd>`: streams `workflow/<cluster of the DAG job>`
Publishes its frames on `evt.dagman.<name>`
Follows   the frames of the schedd, while there is a workflow: what becomes of the jobs of nodes
Answers   start, follow, failed (the process of a DAG job); change, show, explain (people)
Asks      its schedd: whose a DAG job is
"""
