"""
A job of several tasks: these run one after another in its sandbox, each in a container of its own if it wants one.
"""
