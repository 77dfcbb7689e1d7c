"""
Kettle's libraries: what services and the thin client are made of.

An import shows its layer: `kettle_wire` is the contract between processes, `kettle` the libraries, `kettle_services` the services.
"""
