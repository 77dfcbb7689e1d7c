"""The program of a session's worker, which is a job: `python -m kettle.dask.worker`."""
