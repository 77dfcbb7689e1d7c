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

-- name: attempts
-- Runs of jobs that have ended, the last ones first, behind a place; the index of `until_at` leads unless a job is named.
SELECT shard, cluster, proc, attempt, owner, machine, slot, begun_at, ended_at, until_at, wall, cpu, completed, code
  FROM jobs.attempt
 WHERE ($1::timestamptz IS NULL OR until_at >= $1) AND ($2::timestamptz IS NULL OR until_at < $2)
   AND ($3::text[] = '{}' OR machine = ANY ($3)) AND ($4::text[] = '{}' OR owner = ANY ($4))
   AND ($5::text[] = '{}' OR project = ANY ($5))
   AND ($6::integer IS NULL OR (cluster = $6 AND proc = $7::integer AND ($8::text IS NULL OR shard = $8)))
   AND ($9::timestamptz IS NULL
        OR (until_at, shard, cluster, proc, attempt) < ($9, $10::text, $11::integer, $12::integer, $13::integer))
 ORDER BY until_at DESC, shard DESC, cluster DESC, proc DESC, attempt DESC LIMIT $14::integer;

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
