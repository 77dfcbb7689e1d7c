"""
`kettle doctor`: what support would ask first, each answered with what, where and what to do.

`facts` reads; the `*_checks` judge what was read and do nothing else, so that tests need no broken machine.
"""
