"""
iam: who may do what in the pool. It admits machines that join by a token, gives and withdraws tokens, bans, and records all of it.

Owns      the shard `identity`: streams `issuer/`, `rules/`, `ban/`, `jointoken/`, `worker/`, `client/`, `session/`, `token/`, `issued/`, `alarm/`,
          `jobtokens/`, `credential/`, `tokenrequest/`, `autoapproval/`, `deeds/`
Publishes its frames on the private subject of the shard
Answers   of administrators: join tokens, machines, bans, clients, the audit; of people: tokens, sessions, who_am_i
Serves    HTTP: discovery, keys, `/v1/token`, `/v1/revoke`, `/v1/introspect`, `/v1/whoami`, `/v1/explain`,
          `/v1/token-requests`, `/.well-known/kettle-pool`
"""
