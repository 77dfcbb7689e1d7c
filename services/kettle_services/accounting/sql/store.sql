-- How far the records of each queue have been taken by accounting stores, by name of the index.

-- name: schema
-- Where that is kept: it follows from what a store said, not from the log.
-- Two feeds of one service do this at once, and IF NOT EXISTS does not wait for the other one.
SELECT pg_advisory_xact_lock(hashtext('kettle.accounting.store'));
CREATE SCHEMA IF NOT EXISTS accounting;
CREATE TABLE IF NOT EXISTS accounting.taken (
    shard text   NOT NULL,
    index text   NOT NULL,
    frame bigint NOT NULL,      -- all records up to this frame were taken
    PRIMARY KEY (shard, index)
);

-- name: taken
-- The last frame all of whose records were taken.
SELECT frame FROM accounting.taken WHERE shard = $1 AND index = $2;

-- name: take
-- More were taken: a frame never goes back.
INSERT INTO accounting.taken AS t (shard, index, frame) VALUES ($1, $2, $3)
    ON CONFLICT (shard, index) DO UPDATE SET frame = greatest(t.frame, excluded.frame);

-- name: jobs
-- Jobs that left a queue, in the order of leaving.
SELECT frame, cluster, proc, ad FROM jobs.history
 WHERE shard = $1 AND frame <= $2 AND (frame, cluster, proc) > ($3, $4, $5)
 ORDER BY frame, cluster, proc LIMIT $6;

-- name: attempts
-- Attempts that ended, in the order of ending; a job has at most one that ends in a frame.
SELECT frame, cluster, proc, attempt, owner, acct_group, project, machine, slot, begun_at, ended_at, wall, slot_time, cpu,
       good, uncharged, completed, code
  FROM jobs.attempt
 WHERE shard = $1 AND frame <= $2 AND (frame, cluster, proc) > ($3, $4, $5)
 ORDER BY frame, cluster, proc LIMIT $6;
