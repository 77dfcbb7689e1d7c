"""
Tools for language models: the questions and commands of the REST interface in the Model Context Protocol.

One request, one answer, no session: JSON-RPC over HTTP POST at `/mcp`, with the credentials, rights and limits of every other request.
"""
