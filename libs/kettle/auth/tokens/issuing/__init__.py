"""
Our own tokens: the keys that sign them, and tokens that allow less than those from which they are derived.

    signing_keys   which key signs, which are published, and when there is a new one (pure)
    derived        a token that allows a part of what another allows (pure)
    key_store      the keys on disk
"""
