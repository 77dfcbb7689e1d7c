"""
Breaking a pool on purpose, from a seed, and proving that what it promised holds all the same.

    python -m kettle.testing.chaos --help

    schedule    what is broken when: a pure function of a seed and of what there is
    nemesis     breaks it: signals, proxy (lines), disk, clock
    workload    people who use the pool meanwhile, and the book of what they were promised
    witness     jobs that write down what really ran
    pulse       whether the pool works, from moment to moment
    history     the recorded life of every job
    laws        what must be true at the end
    harness     one run
"""
