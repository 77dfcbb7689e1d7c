"""
From a token's text to a verified one: pure, with the clock as an argument.

    parsing        the text of a JWT, taken apart strictly
    issuers        whose tokens are accepted, for whom and in which profiles
    public_keys    the keys that an issuer publishes, and what they may verify
    profiles       which profile a token has, and which claims that demands
    scopes         which scopes are capabilities, and which make a whole token bad
    times          when a token is valid
    verification   all checks, in the order in which they are made
"""
