-- What the REST interface reads of the projection `jobs`, by name; lists are put together in `job_statements`.

-- name: frames
-- How far the tables are, queue by queue.
SELECT shard, frame FROM log.projection WHERE name = $1 AND version = $2 ORDER BY shard;

-- name: recorded
-- How many frames a queue has recorded; of one in another database nothing.
SELECT frame FROM log.shard WHERE name = $1::text;

-- name: queued_job
-- The jobs of one number in the queues of all access points, or of one.
SELECT shard, cluster, proc, owner, status, submitted_at, entered_at, attempts, slot, assigned_at, hold_reason, happened
  FROM jobs.live
 WHERE cluster = $1::integer AND proc = $2::integer AND ($3::text IS NULL OR shard = $3::text)
 ORDER BY shard;

-- name: departed_job
-- The jobs of one number that have left their queue.
SELECT shard, cluster, proc, owner, status, submitted_at, left_at, frame, exit_code, wall_time, memory, ad,
       CASE WHEN search @> '{"exitbysignal": 1}' THEN substring(search->>'exitsignal' FROM '^[0-9]{1,9}$')::integer END AS exit_signal
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
-- Clusters in the queue, the last submitted first, behind a place, with how many of their jobs are in which state, and the first of these.
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
       ) AS states, f.proc, f.happened
  FROM c LEFT JOIN LATERAL (
           SELECT proc, happened FROM jobs.live l
            WHERE l.shard = c.shard AND l.cluster = c.cluster ORDER BY l.proc LIMIT 1
       ) AS f ON true
 ORDER BY submitted_at DESC, shard DESC, cluster DESC;

-- name: clusters_of_sets
-- Clusters in the queue that were submitted with a number of a set: the name of the attribute stands in their submission as it is.
SELECT shard, cluster FROM jobs.cluster
 WHERE ($1::text[] = '{}' OR owner = ANY ($1)) AND ($2::text[] = '{}' OR shard = ANY ($2))
   AND position('JobSetId'::bytea IN event) > 0
 LIMIT $3::integer;

-- name: counts_of_clusters
-- How many jobs of some clusters are in which state, and how many have left the queue.
SELECT c.shard, c.cluster, ARRAY (
           SELECT ROW (l.status, count(*)) FROM jobs.live l
            WHERE l.shard = c.shard AND l.cluster = c.cluster GROUP BY l.status ORDER BY l.status
       ) AS states, (
           SELECT count(*) FROM jobs.history h WHERE h.shard = c.shard AND h.cluster = c.cluster
       ) AS ended
  FROM unnest($1::text[], $2::integer[]) AS c (shard, cluster);

-- name: waiting_clusters
-- The clusters of which most jobs are idle, with how many, the first of these, and how many such clusters there are.
WITH w AS (
    SELECT shard, cluster, count(*) AS jobs, min(proc) AS proc, count(*) OVER () AS clusters FROM jobs.live
     WHERE status = 1 AND ($1::text[] = '{}' OR owner = ANY ($1))
     GROUP BY shard, cluster ORDER BY jobs DESC, shard, cluster LIMIT $2::integer
)
SELECT w.*, l.owner, l.happened FROM w JOIN jobs.live l USING (shard, cluster, proc)
 ORDER BY jobs DESC, shard, cluster;

-- name: jobs_on_claims
-- The jobs that run on some claims.
SELECT shard, claim, cluster, proc, owner, slot, assigned_at AS begun_at, attempts AS attempt
  FROM jobs.live WHERE claim = ANY ($1::text[]) AND assigned_at IS NOT NULL;

-- name: jobs_on_slots_then
-- The jobs that ran on some slots at a moment: attempts that ended later, and those that still run.
SELECT shard, cluster, proc, owner, slot, begun_at, attempt FROM jobs.attempt
 WHERE slot = ANY ($1::text[]) AND until_at > $2::timestamptz AND begun_at <= $2::timestamptz AND ended_at > $2::timestamptz
 UNION ALL
SELECT shard, cluster, proc, owner, slot, assigned_at, attempts FROM jobs.live
 WHERE slot = ANY ($1::text[]) AND assigned_at <= $2::timestamptz;

-- name: jobs_on_machine
-- The jobs that run on a machine.
SELECT l.shard, l.cluster, l.proc, l.owner, l.slot, l.assigned_at AS begun_at, l.attempts AS attempt
  FROM jobs.claim c JOIN jobs.live l ON l.shard = c.shard AND l.claim = c.claim
 WHERE c.startd = $1::text AND c.ended_at IS NULL AND l.assigned_at IS NOT NULL
 ORDER BY l.slot, l.shard, l.cluster, l.proc;

-- name: jobs_on_machine_then
-- The jobs that ran on a machine at a moment.
SELECT shard, cluster, proc, owner, slot, begun_at, attempt FROM jobs.attempt
 WHERE machine = $1::text AND until_at > $2::timestamptz AND begun_at <= $2::timestamptz AND ended_at > $2::timestamptz
 UNION ALL
SELECT l.shard, l.cluster, l.proc, l.owner, l.slot, l.assigned_at, l.attempts
  FROM jobs.claim c JOIN jobs.live l ON l.shard = c.shard AND l.claim = c.claim
 WHERE c.startd = $1::text AND c.ended_at IS NULL AND l.assigned_at <= $2::timestamptz
 ORDER BY slot, shard, cluster, proc;

-- name: machine
-- Since when a machine is there, or is not.
SELECT machine, present, since, cpus, memory FROM machines.machine WHERE machine = $1::text ORDER BY shard LIMIT 1;

-- name: machine_then
-- Whether a machine was there at a moment: when it came or left last before.
SELECT machine, came AS present, at AS since FROM machines.passage
 WHERE machine = $1::text AND at <= $2::timestamptz ORDER BY at DESC, pos DESC LIMIT 1;

-- name: passages
-- When a machine came and left, the last first.
SELECT at, came, reason FROM machines.passage
 WHERE machine = $1::text AND ($2::timestamptz IS NULL OR at <= $2) ORDER BY at DESC, pos DESC LIMIT 50;

-- name: busiest
-- Who ran most in a span of time in some queues, by the numbers of its minutes.
SELECT owner FROM jobs.depth_by_minute
 WHERE shard = ANY ($1::text[]) AND minute >= $2::timestamptz AND minute <= $3::timestamptz
 GROUP BY owner ORDER BY sum(running) DESC, sum(idle) DESC, owner LIMIT $4::integer;

-- name: depth_at
-- How many jobs some owners had in some queues at some moments: of each the last number that was written before.
SELECT o.owner, m.number, sum(d.idle)::integer AS idle, sum(d.running)::integer AS running, sum(d.held)::integer AS held
  FROM unnest($1::text[]) AS s (shard), unnest($2::text[]) AS o (owner),
       unnest($3::timestamptz[]) WITH ORDINALITY AS m (moment, number),
       LATERAL (SELECT idle, running, held FROM jobs.depth_by_minute d
                 WHERE d.shard = s.shard AND d.owner = o.owner AND d.minute <= m.moment
                 ORDER BY d.minute DESC LIMIT 1) AS d
 GROUP BY o.owner, m.number;

-- name: cycles
-- Negotiation cycles, the newest first, behind a place.
SELECT c.shard, c.cycle, c.at, c.started, c.duration, c.slots, c.idle, c.matched, c.rejected,
       (SELECT count(*) FROM (SELECT m.submitter FROM negotiation.match m WHERE m.shard = c.shard AND m.cycle = c.cycle
                               UNION
                              SELECT r.submitter FROM negotiation.rejection r WHERE r.shard = c.shard AND r.cycle = c.cycle
                             ) AS s) AS submitters,
       ARRAY (SELECT ROW (r.reason, sum(r.count)::integer) FROM negotiation.rejection r
               WHERE r.shard = c.shard AND r.cycle = c.cycle
               GROUP BY r.reason ORDER BY sum(r.count) DESC, r.reason LIMIT 5) AS refusals
  FROM negotiation.cycle c
 WHERE ($1::timestamptz IS NULL OR c.at >= $1) AND ($2::timestamptz IS NULL OR c.at < $2)
   AND ($3::timestamptz IS NULL OR c.at <= $3)
   AND ($4::text[] = '{}'
        OR EXISTS (SELECT FROM negotiation.match m
                    WHERE m.shard = c.shard AND m.cycle = c.cycle AND m.submitter = ANY ($4))
        OR EXISTS (SELECT FROM negotiation.rejection r
                    WHERE r.shard = c.shard AND r.cycle = c.cycle AND r.submitter = ANY ($4)))
   AND ($5::timestamptz IS NULL OR (c.at, c.shard, c.cycle) < ($5, $6::text, $7::bigint))
   AND ($8::text IS NULL OR (c.shard = $8 AND c.cycle = $9::bigint))
 ORDER BY c.at DESC, c.shard DESC, c.cycle DESC LIMIT $10::integer;

-- name: matches
-- What a cycle gave.
SELECT submitter, schedd, autocluster, startd, slot, count FROM negotiation.match
 WHERE shard = $1::text AND cycle = $2::bigint AND ($3::text[] = '{}' OR submitter = ANY ($3))
 ORDER BY number LIMIT $4::integer;

-- name: rejections
-- What a cycle refused.
SELECT submitter, schedd, autocluster, count, reason, slots, clauses FROM negotiation.rejection
 WHERE shard = $1::text AND cycle = $2::bigint AND ($3::text[] = '{}' OR submitter = ANY ($3))
 ORDER BY number LIMIT $4::integer;

-- name: held_now
-- Jobs that are held, by the reason as it was given, but some reasons.
SELECT hold_reason, count(*)::integer AS count, array_agg(DISTINCT owner) AS owners, min(entered_at) AS first,
       max(entered_at) AS last,
       (array_agg(cluster || '.' || proc || '@' || shard ORDER BY entered_at DESC, cluster DESC, proc DESC))[1] AS example
  FROM jobs.live
 WHERE status = 5 AND (hold_reason IS NULL OR hold_reason <> ALL ($5::text[]))
   AND entered_at >= $1::timestamptz AND entered_at <= $2::timestamptz
   AND ($3::text[] = '{}' OR owner = ANY ($3)) AND ($4::text[] = '{}' OR shard = ANY ($4))
 GROUP BY hold_reason;

-- name: machines_lost
-- Machines that are gone without having been drained, since a time; those that were lost last come first.
SELECT machine, since FROM machines.machine
 WHERE NOT present AND reason = 'expired' AND since >= $1::timestamptz ORDER BY since DESC, machine LIMIT 100;

-- name: held_by_system
-- Jobs that were held since a time and not by people, if they are more than so many.
SELECT count(*)::integer AS count, min(entered_at) AS first,
       (array_agg(hold_reason ORDER BY entered_at DESC))[1] AS last_reason
  FROM jobs.live
 WHERE status = 5 AND entered_at >= $1::timestamptz AND coalesce(hold_reason, '') !~ '\(by user [^)]*\)$'
HAVING count(*) > $2::integer;

-- name: failed_exits
-- Jobs that ended with another exit code than 0, by code.
SELECT exit_code AS code, count(*)::integer AS count, count(DISTINCT owner)::integer AS owners, min(left_at) AS first,
       max(left_at) AS last,
       (array_agg(cluster || '.' || proc || '@' || shard ORDER BY left_at DESC, cluster DESC, proc DESC))[1] AS example
  FROM jobs.history
 WHERE exit_code <> 0 AND status = 4 AND left_at >= $1::timestamptz AND left_at <= $2::timestamptz
   AND ($3::text[] = '{}' OR owner = ANY ($3)) AND ($4::text[] = '{}' OR shard = ANY ($4))
 GROUP BY exit_code;

-- name: failed_signals
-- Jobs that a signal has ended, by its number.
SELECT substring(search->>'exitsignal' FROM '^[0-9]{1,9}$')::integer AS code, count(*)::integer AS count, count(DISTINCT owner)::integer AS owners,
       min(left_at) AS first, max(left_at) AS last,
       (array_agg(cluster || '.' || proc || '@' || shard ORDER BY left_at DESC, cluster DESC, proc DESC))[1] AS example
  FROM jobs.history
 WHERE search @> '{"exitbysignal": 1}' AND status = 4 AND left_at >= $1::timestamptz AND left_at <= $2::timestamptz
   AND ($3::text[] = '{}' OR owner = ANY ($3)) AND ($4::text[] = '{}' OR shard = ANY ($4))
 GROUP BY code;

-- name: failed_attempts
-- Attempts that ended before their job did, by code, but some codes.
SELECT code, count(*)::integer AS count, count(DISTINCT owner)::integer AS owners, min(ended_at) AS first,
       max(ended_at) AS last, count(DISTINCT machine)::integer AS machines,
       (array_agg(cluster || '.' || proc || '@' || shard ORDER BY ended_at DESC, cluster DESC, proc DESC))[1] AS example
  FROM jobs.attempt
 WHERE code <> 0 AND code <> ALL ($5::integer[]) AND until_at >= $1::timestamptz AND ended_at >= $1::timestamptz AND ended_at <= $2::timestamptz
   AND ($3::text[] = '{}' OR owner = ANY ($3)) AND ($4::text[] = '{}' OR shard = ANY ($4))
 GROUP BY code;

-- name: log_shards
-- Whose records are in this database: their numbers, how far they go, and up to which frame they are in the archive.
SELECT s.id, s.name, s.frame, coalesce(max(a.last_frame), 0) AS archived
  FROM log.shard s LEFT JOIN log.archive a ON a.shard = s.id
 WHERE s.kind <> 'identity' GROUP BY s.id ORDER BY s.name;

-- name: frame_time
-- When a frame was closed.
SELECT at FROM log.event WHERE shard = $1::integer AND frame = $2::bigint LIMIT 1;

-- name: log_window
-- Events of one shard between two frames, the newest first, before a place.
SELECT frame, pos, ver, at, stream, type, data FROM log.event
 WHERE shard = $1::integer AND frame >= $2::bigint AND frame <= $3::bigint AND (frame, pos) < ($3::bigint, $4::bigint)
   AND type LIKE ANY ($5::text[])
 ORDER BY frame DESC, pos DESC LIMIT $6::integer;

-- name: log_streams
-- Events of some streams of one shard between two frames, the newest first, before a place.
SELECT frame, pos, ver, at, stream, type, data FROM log.event
 WHERE shard = $1::integer AND frame >= $2::bigint AND frame <= $3::bigint AND (frame, pos) < ($3::bigint, $4::bigint)
   AND type LIKE ANY ($5::text[]) AND stream = ANY ($7::text[])
 ORDER BY frame DESC, pos DESC LIMIT $6::integer;

-- name: claims_of_machine
-- The claims of a machine's slots.
SELECT claim FROM jobs.claim WHERE startd = $1::text;

-- name: owners
-- Whose clusters are.
SELECT shard, cluster, owner FROM jobs.cluster WHERE (shard, cluster) IN (SELECT * FROM unnest($1::text[], $2::integer[]))
 UNION
SELECT w.shard, w.cluster, h.owner FROM unnest($1::text[], $2::integer[]) AS w (shard, cluster),
       LATERAL (SELECT owner FROM jobs.history h WHERE h.cluster = w.cluster AND h.shard = w.shard LIMIT 1) AS h;

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

-- name: log_until
-- Events of some streams of one shard up to a time, in order.
SELECT frame, ver, at, stream, type, data FROM log.event
 WHERE shard = $1::integer AND stream = ANY ($2::text[]) AND at <= $3::timestamptz
 ORDER BY frame, pos;

-- name: queues_at
-- How many jobs each owner had in each queue at the end of the last full minute before a time.
SELECT DISTINCT ON (shard, owner) shard, owner, idle, running, removed, held FROM jobs.depth_by_minute
 WHERE minute <= $1::timestamptz - interval '1 minute'
   AND ($2::text[] = '{}' OR owner = ANY ($2)) AND ($3::text[] = '{}' OR shard = ANY ($3))
 ORDER BY shard, owner, minute DESC;
