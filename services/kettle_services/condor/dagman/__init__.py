"""
condor_dagman: the process of a DAG job, the hands of its workflow.

    process         asks the dagman service what is to be done until it is over
    node_source     where the jobs of nodes come from: what the process knows of it
    dag_nodes       of DAG files
    document_nodes  of a document of PROMINENCE
    node_jobs       the jobs of nodes, from their submit descriptions
    scripts         PRE, POST and HOLD scripts, as jobs of the local universe
    macros          the words of script arguments that stand for something
"""
