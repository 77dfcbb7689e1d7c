"""`kettle session`: clusters of Dask, notebooks and programs with which people work."""
