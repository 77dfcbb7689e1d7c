"""
Where the services of a host come from: a warm process that forks each of them, so that their modules are loaded once.

    serving    the process: loads modules, forks, says what became of its children
    identity   what a forked process shows of itself: the command line and the environment of the service that it is
    program    what its program does: serve, and in a forked process be the service
    client     the master's side
    made       a zygote that a master forks, which was forked itself
    messages   what the two tell each other
"""
