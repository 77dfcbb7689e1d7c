"""
The commands of a person in tests, each a process with its own arguments, environment, directory and standard streams.

Three quarters of the processor time of a short command go into loading its modules. So most commands of tests are forked
from a process that has these loaded; what such a command does from its first line on is what it always does.

    running    run a command to its end
    warm       the tests' side of the process that forks, which is a command server as people have them
"""
