"""
Certificates: a trial authority of a site's own, what is wrong with a certificate, and connections that insist on one.
"""
