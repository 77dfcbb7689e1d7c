"""
The REST interface: routes as `kettle_wire.rest` declares them, answered from the tables of the projection `jobs`, and by the services
of the pool in the name of the person who asks.
"""
