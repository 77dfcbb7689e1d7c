-- The statements that fill the tables, by name. The first argument is the shard.

-- name: clusters
-- Submissions of clusters in the queue.
SELECT cluster, submitted_at, event FROM cluster WHERE shard = $1 AND cluster = ANY ($2::integer[]);

-- name: jobs
-- What happened to jobs in the queue. Here and below OFFSET 0 has each of them looked up by its key; a plan that was made
-- when the queue was short, and is kept, would read all of a long one.
SELECT w.cluster, w.proc, l.happened
  FROM unnest($2::integer[], $3::integer[]) AS w (cluster, proc),
       LATERAL (SELECT happened FROM live
                 WHERE shard = $1 AND cluster = w.cluster AND proc = w.proc OFFSET 0) AS l;

-- name: submit
-- Keep new clusters, and every job of them but those that have left already.
WITH c AS (
    SELECT * FROM unnest($2::integer[], $3::text[], $4::timestamptz[], $5::integer[], $6::bytea[])
               AS c (cluster, owner, at, jobs, event)
), kept AS (
    INSERT INTO cluster (shard, cluster, owner, submitted_at, jobs, event)
    SELECT $1, cluster, owner, at, jobs, event FROM c
)
INSERT INTO live (shard, cluster, proc, owner, status, submitted_at, entered_at, attempts, happened)
SELECT $1, c.cluster, p.proc, c.owner, 1, c.at, date_trunc('second', c.at), 0, ''
  FROM c, generate_series(0, c.jobs - 1) AS p (proc)
 WHERE (c.cluster, p.proc) NOT IN (SELECT * FROM unnest($7::integer[], $8::integer[]));

-- name: make
-- Keep jobs that came into the queue after their submission, but those that have left already.
WITH m AS (
    SELECT * FROM unnest($2::integer[], $3::integer[], $4::integer[]) AS m (cluster, first, until)
), more AS (
    UPDATE cluster c SET jobs = m.until FROM m WHERE c.shard = $1 AND c.cluster = m.cluster
)
INSERT INTO live (shard, cluster, proc, owner, status, submitted_at, entered_at, attempts, happened)
SELECT $1, c.cluster, p.proc, c.owner, 1, c.submitted_at, date_trunc('second', c.submitted_at), 0, ''
  FROM m JOIN cluster c ON c.shard = $1 AND c.cluster = m.cluster,
       generate_series(m.first, m.until - 1) AS p (proc)
 WHERE (c.cluster, p.proc) NOT IN (SELECT * FROM unnest($5::integer[], $6::integer[]));

-- name: happen
-- Add to what happened to jobs, and say how they are now.
WITH n AS (
    SELECT n.*, place.ctid AS place
      FROM unnest($2::integer[], $3::integer[], $4::bytea[], $5::integer[], $6::timestamptz[], $7::integer[],
                  $8::text[], $9::text[], $10::timestamptz[], $11::timestamptz[], $12::text[])
        AS n (cluster, proc, happened, status, entered_at, attempts, slot, claim, assigned_at, executing_at, hold_reason),
           LATERAL (SELECT ctid FROM live
                     WHERE shard = $1 AND cluster = n.cluster AND proc = n.proc OFFSET 0) AS place
)
UPDATE live l SET (happened, status, entered_at, attempts, slot, claim, assigned_at, executing_at, hold_reason) =
       (l.happened || n.happened, n.status, n.entered_at, n.attempts, n.slot, n.claim, n.assigned_at, n.executing_at,
        n.hold_reason)
  FROM n WHERE l.ctid = n.place;

-- name: statuses
-- Of ranges of jobs of clusters, how many are of which owner and status.
SELECT l.owner, l.status, count(*)
  FROM unnest($2::integer[], $3::integer[], $4::integer[]) AS r (cluster, first, last),
       LATERAL (SELECT owner, status FROM live
                 WHERE shard = $1 AND cluster = r.cluster AND proc BETWEEN r.first AND r.last OFFSET 0) AS l
 GROUP BY l.owner, l.status;

-- name: become
-- Add the same to what happened to all jobs of such ranges, and say how they are now.
WITH r AS (
    SELECT place.ctid AS place
      FROM unnest($2::integer[], $3::integer[], $4::integer[]) AS r (cluster, first, last),
           LATERAL (SELECT ctid FROM live
                     WHERE shard = $1 AND cluster = r.cluster AND proc BETWEEN r.first AND r.last OFFSET 0) AS place
)
UPDATE live l SET (happened, status, entered_at, hold_reason) =
       (l.happened || $5::bytea, $6::integer, $7::timestamptz, $8::text)
  FROM r WHERE l.ctid = r.place;

-- name: leave
-- Jobs are not in the queue any more.
WITH d AS (
    SELECT place.ctid AS place
      FROM unnest($2::integer[], $3::integer[]) AS d (cluster, proc),
           LATERAL (SELECT ctid FROM live
                     WHERE shard = $1 AND cluster = d.cluster AND proc = d.proc OFFSET 0) AS place
)
DELETE FROM live l USING d WHERE l.ctid = d.place;

-- name: cut
-- No more jobs of clusters are to come: all of them did, or never will.
UPDATE cluster c SET jobs = cut.jobs FROM unnest($2::integer[], $3::integer[]) AS cut (cluster, jobs)
 WHERE c.shard = $1 AND c.cluster = cut.cluster;

-- name: depart
-- Keep jobs that have left the queue in the history.
INSERT INTO history (shard, cluster, proc, owner, status, submitted_at, left_at, frame, exit_code, wall_time, memory,
                     queued, started, completed, search, ad)
SELECT $1, cluster, proc, owner, status, submitted_at, left_at, frame, exit_code, wall_time, memory, queued, started,
       completed, search::jsonb, ad
  FROM unnest($2::integer[], $3::integer[], $4::text[], $5::integer[], $6::timestamptz[], $7::timestamptz[],
              $8::bigint[], $9::bigint[], $10::double precision[], $11::bigint[], $12::bigint[], $13::bigint[],
              $14::bigint[], $15::text[], $16::bytea[])
    AS d (cluster, proc, owner, status, submitted_at, left_at, frame, exit_code, wall_time, memory, queued, started,
          completed, search, ad);

-- name: forget
-- Drop those clusters that have no job in the queue, and of whose jobs none is to come.
DELETE FROM cluster c USING unnest($2::integer[], $3::integer[]) AS g (cluster, jobs)
 WHERE c.shard = $1 AND c.cluster = g.cluster AND c.jobs >= g.jobs
   AND NOT EXISTS (SELECT FROM live l WHERE l.shard = c.shard AND l.cluster = c.cluster);

-- name: spend
-- Add to what owners have used.
INSERT INTO usage AS u (shard, owner, jobs_completed, attempts, wall, slot_time, cpu)
SELECT $1, s.owner, s.jobs_completed, s.attempts, s.wall, s.slot_time, s.cpu
  FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
    AS s (owner, jobs_completed, attempts, wall, slot_time, cpu)
    ON CONFLICT (shard, owner) DO UPDATE SET
       jobs_completed = u.jobs_completed + excluded.jobs_completed,
       attempts = u.attempts + excluded.attempts,
       wall = u.wall + excluded.wall,
       slot_time = u.slot_time + excluded.slot_time,
       cpu = u.cpu + excluded.cpu;

-- name: ended
-- Keep attempts that ended.
INSERT INTO attempt (shard, cluster, proc, attempt, owner, acct_group, project, machine, slot, begun_at, ended_at,
                     until_at, wall, slot_time, cpu, good, uncharged, completed, code, frame)
SELECT $1, a.*
  FROM unnest($2::integer[], $3::integer[], $4::integer[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
              $10::timestamptz[], $11::timestamptz[], $12::timestamptz[], $13::bigint[], $14::bigint[], $15::bigint[],
              $16::bigint[], $17::bigint[], $18::boolean[], $19::integer[], $20::bigint[]) AS a;

-- name: deepen
-- Changes of the depth up to some minutes, each counted from the present depth; `last` marks those up to the end.
WITH n AS (
    SELECT d.owner, d.minute, d.last, coalesce(p.idle, 0) + d.idle AS idle, coalesce(p.running, 0) + d.running AS running,
           coalesce(p.removed, 0) + d.removed AS removed, coalesce(p.held, 0) + d.held AS held
      FROM unnest($2::text[], $3::timestamptz[], $4::boolean[], $5::integer[], $6::integer[], $7::integer[],
                  $8::integer[]) AS d (owner, minute, last, idle, running, removed, held)
      LEFT JOIN depth p ON p.shard = $1 AND p.owner = d.owner
), now AS (
    INSERT INTO depth (shard, owner, idle, running, removed, held)
    SELECT $1, owner, idle, running, removed, held FROM n WHERE last
        ON CONFLICT (shard, owner) DO UPDATE SET idle = excluded.idle, running = excluded.running,
           removed = excluded.removed, held = excluded.held
)
INSERT INTO depth_by_minute (shard, owner, minute, idle, running, removed, held)
SELECT $1, owner, minute, idle, running, removed, held FROM n
    ON CONFLICT (shard, owner, minute) DO UPDATE SET idle = excluded.idle, running = excluded.running,
       removed = excluded.removed, held = excluded.held;

-- name: grant
-- Keep new claims.
INSERT INTO claim (shard, claim, startd, slot, submitter, autocluster, lease, granted_at)
SELECT $1, c.* FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::double precision[],
                           $8::timestamptz[]) AS c;

-- name: end
-- Claims are over. One that was never granted is not noted: its startd refused it.
UPDATE claim c SET ended_at = n.at, reason = n.reason
  FROM unnest($2::text[], $3::timestamptz[], $4::text[]) AS n (claim, at, reason)
 WHERE c.shard = $1 AND c.claim = n.claim;

-- name: forget_minutes
-- Drop the depths before a day.
DELETE FROM depth_by_minute WHERE shard = $1 AND minute < $2;

-- name: forget_claims
-- Drop the claims that ended before a day.
DELETE FROM claim WHERE shard = $1 AND ended_at < $2;

-- name: submissions
-- Submissions of clusters in any queues, for those who read the tables; it has no first argument of its own.
SELECT c.shard, c.cluster, c.submitted_at, c.event
  FROM jobs.cluster c JOIN unnest($1::text[], $2::integer[]) AS w (shard, cluster) USING (shard, cluster);
