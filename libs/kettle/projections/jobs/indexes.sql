-- What only readers need: a rebuild makes these when the tables are full.

CREATE INDEX live_owner ON live (owner);
CREATE INDEX live_newest ON live (submitted_at, shard, cluster, proc);

CREATE INDEX history_newest ON history (left_at, shard, cluster, proc);
CREATE INDEX history_owner ON history (owner, left_at, shard, cluster, proc);
CREATE INDEX history_cluster ON history (cluster, proc);
CREATE INDEX history_frame ON history (shard, frame, cluster, proc);
CREATE INDEX history_failed ON history (exit_code) WHERE exit_code <> 0;
CREATE INDEX history_wall_time ON history (wall_time);
CREATE INDEX history_memory ON history (memory);
CREATE INDEX history_queued ON history (queued);
CREATE INDEX history_started ON history (started);
CREATE INDEX history_completed ON history (completed);
CREATE INDEX history_search ON history USING gin (search jsonb_path_ops);

CREATE INDEX attempt_until ON attempt (until_at);
CREATE INDEX attempt_frame ON attempt (shard, frame, cluster, proc);

CREATE INDEX depth_by_minute_age ON depth_by_minute (shard, minute);

CREATE INDEX claim_slot ON claim (startd, slot) WHERE ended_at IS NULL;
CREATE INDEX claim_age ON claim (shard, ended_at);
