"""
JupyterHub on a pool: servers of people are jobs of theirs (`pip install kettle[jupyterhub]`).

    c.JupyterHub.spawner_class = "kettle"

Nothing of JupyterHub is imported before `kettle.jupyterhub.spawner` is.
"""
