"""
Where the services of a host come from: a warm process that forks each of them, so that their modules are loaded once.

    serving    the process: loads modules, forks, says what became of its children
    identity   what a forked process shows of itself: the command line and the environment of the service that it is
    client     the master's side
    messages   what the two tell each other
"""
