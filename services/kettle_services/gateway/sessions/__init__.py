"""
Sessions of people who come with a browser: how one begins, by what it is known, and what ends it.

A session holds the credential with which it began, in memory only; who that is and what that person may do is asked again with each
request, so a session gives nobody more, and not for longer, than the credential itself.
"""
