"""
Tokens: those of other issuers are verified, and Kettle's own are signed.

    verified       a token that was verified, and why one is refused
    checking/      from a token's text to a verified one: pure, with the clock as an argument
    keys/          where an issuer publishes its keys, fetching them, and how long they are used
    verifier       both together: a token's text in, a verified token out
    capabilities   the levels that a token's scopes give, and the paths of its storage scopes
    issuing/       our own signing keys, and the tokens that they sign
    bearer         where a program finds the token of who runs it

What is accepted is in docs/reference/tokens.md; the reasons are in docs/decisions/0085-tokens-of-other-issuers.md.
"""
