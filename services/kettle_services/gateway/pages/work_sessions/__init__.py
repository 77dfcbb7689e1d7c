"""Pages of interactive sessions: clusters of Dask, notebooks, and programs with which people work."""
