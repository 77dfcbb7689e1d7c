"""
What starts a container: the interface of all runtimes, Bubblewrap, OCI runtimes, the engines docker and podman, and the ways into their containers.
"""
