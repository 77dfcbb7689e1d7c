"""
HTCondor's IDTOKENS: tokens that a pool signs with a key of its own, for people and machines of the pool.

    pool_key      from a key's file to the secret that signs
    idtoken       making a token, byte for byte as HTCondor does
    checking      a token's text in, a verified token out (pure)
    places        which knobs say where keys and tokens are
    token_files   the files with tokens, one a line

What HTCondor does in each was tried with its own library: tests/conformance/test_idtokens.py.
"""
