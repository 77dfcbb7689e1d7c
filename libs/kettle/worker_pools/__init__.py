"""
Pools of workers as people write them: files read with all that is wrong in them, and what is different between two.

    pool = read_pool(text, "cloud.toml")     raises PoolFileRefused with every fault
    changes(before, pool)                    sentences
"""
