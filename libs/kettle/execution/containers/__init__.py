"""
Containers for jobs, behind one small interface: a `Runtime` starts a `Box` and says which process is the job.

Imported by a starter only when its job wants a container, so this package imports nothing by itself: a plain job
does not pay for it.
"""
