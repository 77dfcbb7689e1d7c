"""The program of a session's scheduler, which is a job: `python -m kettle.dask.scheduler`."""
