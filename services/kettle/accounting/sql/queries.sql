-- Every statement of accounting, by name.

-- name: clusters
-- Submissions of clusters in the queue.
SELECT cluster, at, event FROM accounting.cluster_1 WHERE shard = $1 AND cluster = ANY ($2::integer[]);

-- name: jobs
-- What happened to jobs in the queue.
SELECT j.cluster, j.proc, j.happened
  FROM unnest($2::integer[], $3::integer[]) AS w (cluster, proc)
  JOIN accounting.job_1 j ON j.shard = $1 AND j.cluster = w.cluster AND j.proc = w.proc;

-- name: submit
-- Keep new clusters.
INSERT INTO accounting.cluster_1 (shard, cluster, at, live, event)
SELECT $1, c.cluster, c.at, c.live, c.event
  FROM unnest($2::integer[], $3::bigint[], $4::integer[], $5::bytea[]) AS c (cluster, at, live, event);

-- name: happen
-- Add to what happened to jobs.
INSERT INTO accounting.job_1 AS j (shard, cluster, proc, happened)
SELECT $1, n.cluster, n.proc, n.happened
  FROM unnest($2::integer[], $3::integer[], $4::bytea[]) AS n (cluster, proc, happened)
    ON CONFLICT (shard, cluster, proc) DO UPDATE SET happened = j.happened || excluded.happened;

-- name: depart
-- Move jobs from the queue into the history.
WITH d AS (
    SELECT * FROM unnest($2::integer[], $3::integer[], $4::text[], $5::integer[], $6::timestamptz[],
                         $7::timestamptz[], $8::bigint[], $9::bytea[])
             AS d (cluster, proc, owner, status, submitted_at, left_at, frame, ad)
), gone AS (
    DELETE FROM accounting.job_1 j USING d WHERE j.shard = $1 AND j.cluster = d.cluster AND j.proc = d.proc
)
INSERT INTO accounting.history_1 (shard, cluster, proc, owner, status, submitted_at, left_at, frame, ad)
SELECT $1, cluster, proc, owner, status, submitted_at, left_at, frame, ad FROM d;

-- name: shrink
-- Clusters with so many jobs less in the queue.
UPDATE accounting.cluster_1 c SET live = c.live - n.gone
  FROM unnest($2::integer[], $3::integer[]) AS n (cluster, gone)
 WHERE c.shard = $1 AND c.cluster = n.cluster;

-- name: forget
-- Drop those clusters that have no job in the queue.
DELETE FROM accounting.cluster_1 WHERE shard = $1 AND cluster = ANY ($2::integer[]) AND live <= 0;

-- name: spend
-- Add to what owners have used.
INSERT INTO accounting.usage_1 AS u (shard, owner, jobs_completed, attempts, wall, slot_time, cpu)
SELECT $1, s.owner, s.jobs_completed, s.attempts, s.wall, s.slot_time, s.cpu
  FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
    AS s (owner, jobs_completed, attempts, wall, slot_time, cpu)
    ON CONFLICT (shard, owner) DO UPDATE SET
       jobs_completed = u.jobs_completed + excluded.jobs_completed,
       attempts = u.attempts + excluded.attempts,
       wall = u.wall + excluded.wall,
       slot_time = u.slot_time + excluded.slot_time,
       cpu = u.cpu + excluded.cpu;

-- name: newest
-- The newest of all jobs.
SELECT ad FROM accounting.history_1 ORDER BY left_at DESC, cluster DESC, proc DESC LIMIT $1;

-- name: newest_of
-- The newest of the jobs that are listed, or in a listed cluster, or of a listed owner; each part by its own index.
SELECT ad FROM (
    (SELECT h.shard, h.cluster, h.proc, h.left_at, h.ad
       FROM unnest($2::integer[], $3::integer[]) AS w (cluster, proc)
       JOIN accounting.history_1 h USING (cluster, proc))
    UNION
    (SELECT shard, cluster, proc, left_at, ad FROM accounting.history_1 WHERE cluster = ANY ($4::integer[])
      ORDER BY left_at DESC, cluster DESC, proc DESC LIMIT $1)
    UNION
    (SELECT shard, cluster, proc, left_at, ad FROM accounting.history_1 WHERE owner = ANY ($5::text[])
      ORDER BY left_at DESC, cluster DESC, proc DESC LIMIT $1)
) AS found
ORDER BY left_at DESC, cluster DESC, proc DESC LIMIT $1;

-- name: usage
-- What owners have used, over all queues; no owner named: all of them.
SELECT owner, sum(jobs_completed)::bigint AS jobs_completed, sum(attempts)::bigint AS attempts,
       sum(wall)::bigint AS wall, sum(slot_time)::bigint AS slot_time, sum(cpu)::bigint AS cpu
  FROM accounting.usage_1
 WHERE cardinality($1::text[]) = 0 OR owner = ANY ($1::text[])
 GROUP BY owner ORDER BY owner COLLATE "C";
