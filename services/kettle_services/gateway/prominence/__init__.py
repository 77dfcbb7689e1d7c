"""
The first version of PROMINENCE's REST interface, as its own client expects it.

`application` answers requests, `wiring` says what with; each other module answers for one part of the interface.
"""
