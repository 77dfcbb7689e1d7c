"""
Kettle's services: one package per role, started with `kettle run ROLE` or `python -m kettle_services.ROLE`.

Services know each other only through the bus, so none imports another; the exceptions are listed in pyproject.toml.
"""
