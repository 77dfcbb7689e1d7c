"""
The wire contract as documents: JSON Schemas (2020-12), an AsyncAPI 3.0 and an OpenAPI 3.1 document, made from the structs of `kettle_wire`.

The structs are the source. The documents are made on demand by the code that serves or prints them; those in
`schemas/json` are the published ones, which a changed struct is compared with.
"""

from kettle.schema_generation.asyncapi import asyncapi
from kettle.schema_generation.catalogue import documents
from kettle.schema_generation.compatibility import incompatible
from kettle.schema_generation.json_schema import Document, text
from kettle.schema_generation.openapi import breaks, openapi

__all__ = ["Document", "asyncapi", "breaks", "documents", "incompatible", "openapi", "text"]
