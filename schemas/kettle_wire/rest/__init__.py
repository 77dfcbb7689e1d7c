"""
The REST interface of a pool: every route declared once, with what it takes, what it answers and how it is refused.

`kettle_wire.rest.catalogue.ROUTES` lists them.  The web front of the gateway, the OpenAPI document and the reference page
all follow from these declarations.
"""
