-- What the REST interface reads of the projection `jobs`, by name; lists are put together in `job_statements`.

-- name: frames
-- How far the tables are, queue by queue.
SELECT shard, frame FROM log.projection WHERE name = $1 AND version = $2 ORDER BY shard;

-- name: queued_job
-- The jobs of one number in the queues of all access points, or of one.
SELECT shard, cluster, proc, owner, status, submitted_at, entered_at, attempts, slot, assigned_at, hold_reason, happened
  FROM jobs.live
 WHERE cluster = $1::integer AND proc = $2::integer AND ($3::text IS NULL OR shard = $3::text)
 ORDER BY shard;

-- name: departed_job
-- The jobs of one number that have left their queue.
SELECT shard, cluster, proc, owner, status, submitted_at, left_at, frame, exit_code, wall_time, memory, ad
  FROM jobs.history
 WHERE cluster = $1::integer AND proc = $2::integer AND ($3::text IS NULL OR shard = $3::text)
 ORDER BY shard;

-- name: shards_of_job
-- In which queues a job of one number is, or was.
SELECT shard FROM jobs.live
 WHERE cluster = $1::integer AND proc = $2::integer AND ($3::text IS NULL OR shard = $3::text)
 UNION
SELECT shard FROM jobs.history
 WHERE cluster = $1::integer AND proc = $2::integer AND ($3::text IS NULL OR shard = $3::text)
 ORDER BY shard;

-- name: clusters
-- Clusters in the queue, the last submitted first, behind a place, with how many of their jobs are in which state.
WITH c AS (
    SELECT shard, cluster, owner, submitted_at FROM jobs.cluster
     WHERE ($1::text[] = '{}' OR owner = ANY ($1)) AND ($2::text[] = '{}' OR shard = ANY ($2))
       AND ($3::integer[] = '{}' OR cluster = ANY ($3))
       AND ($4::timestamptz IS NULL OR (submitted_at, shard, cluster) < ($4, $5::text, $6::integer))
     ORDER BY submitted_at DESC, shard DESC, cluster DESC LIMIT $7::integer
)
SELECT c.*, ARRAY (
           SELECT ROW (l.status, count(*)) FROM jobs.live l
            WHERE l.shard = c.shard AND l.cluster = c.cluster GROUP BY l.status ORDER BY l.status
       ) AS states
  FROM c ORDER BY submitted_at DESC, shard DESC, cluster DESC;

-- name: shards_of_cluster
-- In which queues jobs of a cluster of one number are, or were.
SELECT shard FROM jobs.cluster WHERE cluster = $1::integer AND ($2::text IS NULL OR shard = $2::text)
 UNION
SELECT shard FROM jobs.history WHERE cluster = $1::integer AND ($2::text IS NULL OR shard = $2::text)
 ORDER BY shard;

-- name: owner_of_cluster
-- Whose the jobs of a cluster are that is known.
SELECT owner FROM jobs.cluster WHERE cluster = $1::integer AND shard = $2::text
 UNION ALL
SELECT owner FROM jobs.history WHERE cluster = $1::integer AND shard = $2::text
 LIMIT 1;

-- name: depth_at
-- How many jobs each owner had in each queue at the end of the last full minute before a time.
SELECT DISTINCT ON (shard, owner) shard, owner, idle, running, removed, held FROM jobs.depth_by_minute
 WHERE minute <= $1::timestamptz - interval '1 minute'
   AND ($2::text[] = '{}' OR owner = ANY ($2)) AND ($3::text[] = '{}' OR shard = ANY ($3))
 ORDER BY shard, owner, minute DESC;
