"""
The service of interactive sessions: clusters of Dask, notebooks, and programs with which people work.

Owns      the shard `sessions.<schedd>`: streams `session/<id>`
Answers   people: create, list, show, change, restart, stop, follow, profiles, certificate; of shadows: member
Asks      its schedd: submit_members, act_on_members, explain_members; the negotiator: why
Publishes its frames on `evt.sessions.<schedd>`
"""
