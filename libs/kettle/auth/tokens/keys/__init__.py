"""
Where an issuer publishes its keys, fetching them, and how long they are used.

    discovery   the documents of an issuer (OpenID Connect Discovery, RFC 8414)
    fetching    one document over HTTPS, from no place that it must not come from
    key_cache   which keys are used, for how long, and when they are fetched again
"""
