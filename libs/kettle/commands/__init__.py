"""
Commands that are run here or on another host, to their end, with a time limit.

    CommandError
    ├── NotStartedError     nothing was run
    │   └── HostRefusedError    the host does not take our key, or cannot prove that it is the one that is meant
    └── EndNotSeenError     it was run, perhaps, and nobody knows how it ended
"""
