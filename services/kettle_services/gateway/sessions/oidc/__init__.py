"""
Signing in at an issuer of the site: OpenID Connect with a code and PKCE, in which the gateway is the client.
"""
