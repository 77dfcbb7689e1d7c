"""
The scaler: decides which machines are to be made and removed, by asking the matcher what would run if they existed.

Owns      the shard `scaler`: streams `pool/<name>`, `plan/made`, `lease/<id>`, `offer/<pool>.<offer>`, `provider/<name>`,
          `host/<machine>`
Watches   the ads of slots and submitters
Publishes its frames on `evt.scaler`
Answers   people: what they do to pools, what it has planned and why; leased machines: renew
Asks      the negotiator: how submitters and groups stand; provisioners: to make, find and remove machines; startds: to drain, and not to
"""
