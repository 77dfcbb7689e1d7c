"""
Services that running jobs publish: what a job may publish, and the tunnel through which people reach it.

`services` and `sharing` read what a description says; `frames` and `multiplexer` are the protocol of the tunnel, pure; `tunnel` carries
it over a connection of asyncio, and `relay` joins a stream of it with a socket.
"""
