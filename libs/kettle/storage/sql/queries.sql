-- Every statement that the log sends, by name. A query ends where the next begins.

-- name: shard
-- The present owner and head of one shard.
SELECT id, name, epoch, head, frame, owner, piece_events FROM log.shard WHERE name = $1;

-- name: shards
-- All shards, by name.
SELECT id, name, epoch, head, frame, owner FROM log.shard ORDER BY name;

-- name: raise_epoch
-- Become the owner of a shard that exists; no row also: one of the two is $3, who brings shards from files, and the other is not.
UPDATE log.shard SET epoch = epoch + 1, owner = $2 WHERE name = $1 AND (owner = $3) = ($2 = $3)
RETURNING id, name, epoch, head, frame, owner, piece_events;

-- name: make_shard
-- Become the first owner of a shard; no row: somebody else made it meanwhile.
INSERT INTO log.shard (name, kind, epoch, owner, piece_events)
VALUES ($1, substring($1 FROM '^[[:alpha:]]*'), 1, $2, $3)
ON CONFLICT (name) DO NOTHING
RETURNING id, name, epoch, head, frame, owner, piece_events;

-- name: fence_working_set
-- From now on only the new owner moves the working set's cursor; waits for a save that is under way.
INSERT INTO log.projection (name, version, shard, epoch) SELECT 'working_set', $3, name, $2 FROM log.shard WHERE id = $1
ON CONFLICT (name, version, shard) DO UPDATE SET epoch = excluded.epoch;

-- name: make_pieces
-- Make the tables for ranges of positions; does nothing about those that are there.
SELECT log.make_piece($1, piece) FROM generate_series($2::bigint, $3::bigint) piece;

-- name: append
-- One frame and the answers decided with it, if epoch, frame and head are what the owner thinks. Returns 1 or 0.
WITH owned AS (
    UPDATE log.shard SET frame = $3, head = $4::bigint + cardinality($6::text[]) - 1
     WHERE id = $1 AND epoch = $2 AND frame = $3::bigint - 1 AND head = $4::bigint - 1
 RETURNING id
), events AS (
    INSERT INTO log.event (shard, frame, pos, epoch, ver, at, stream, type, data, meta)
    SELECT owned.id, $3, $4::bigint + e.i - 1, $2, e.ver, $5, e.stream, e.type, e.data, e.meta
      FROM owned, unnest($6::text[], $7::integer[], $8::text[], $9::bytea[], $10::bytea[])
           WITH ORDINALITY AS e (stream, ver, type, data, meta, i)
), answers AS (
    INSERT INTO log.command (shard, id, frame, at, reply)
    SELECT owned.id, a.id, $3, $5, a.reply
      FROM owned, unnest($11::text[], $12::bytea[]) AS a (id, reply)
        ON CONFLICT (shard, id) DO NOTHING
)
SELECT count(*) FROM owned;

-- name: answer
-- Answers of commands that changed nothing, under the guard of `append`. Returns 1 or 0.
WITH owned AS (
    SELECT id FROM log.shard WHERE id = $1 AND epoch = $2 AND frame = $3::bigint - 1 AND head = $4::bigint - 1
       FOR UPDATE
), answers AS (
    INSERT INTO log.command (shard, id, frame, at, reply)
    SELECT owned.id, a.id, $3::bigint - 1, $5, a.reply
      FROM owned, unnest($6::text[], $7::bytea[]) AS a (id, reply)
        ON CONFLICT (shard, id) DO NOTHING
)
SELECT count(*) FROM owned;

-- name: read
-- A page of events from a frame and position on, up to a frame: at most `$5` of them, and the last one begins before
-- byte `$6`. How long an event is is known without reading it. One row for the events of one frame: an array costs its
-- reader a fraction of what as many rows do.
SELECT frame, epoch, at, min(pos), max(pos),
       array_agg(stream ORDER BY pos), array_agg(ver ORDER BY pos), array_agg(type ORDER BY pos),
       array_agg(data ORDER BY pos), array_agg(meta ORDER BY pos)
  FROM (
    SELECT *, sum(octet_length(data)) OVER (ORDER BY frame, pos ROWS UNBOUNDED PRECEDING) - octet_length(data) AS begins
      FROM (
        SELECT frame, pos, epoch, ver, at, stream, type, data, meta FROM log.event
         WHERE shard = $1 AND (frame, pos) > ($2, $3) AND frame <= $4
         ORDER BY frame, pos LIMIT $5
      ) AS nearest
) AS page WHERE begins < $6 GROUP BY frame, epoch, at ORDER BY frame, min(pos);

-- name: stream
-- All events of one stream.
SELECT frame, pos, epoch, ver, at, stream, type, data, meta FROM log.event
 WHERE shard = $1 AND stream = $2 ORDER BY ver;

-- name: answers
-- The newest answers, newest first.
SELECT id, frame, reply FROM log.command WHERE shard = $1 ORDER BY frame DESC, at DESC LIMIT $2;

-- name: forget_answers
-- Drop answers older than the frame of the one that is `$2` back from the newest.
DELETE FROM log.command WHERE shard = $1 AND frame < (
    SELECT frame FROM log.command WHERE shard = $1 ORDER BY frame DESC OFFSET $2 - 1 LIMIT 1
);

-- name: cursor
-- How far a projection has come in a shard.
SELECT frame FROM log.projection WHERE name = $1 AND version = $2 AND shard = $3;

-- name: place
-- The version of a projection's tables, how far they follow a shard, and why they do not come further.
SELECT d.version, coalesce(p.frame, 0) AS frame, p.error FROM log.projected d
  LEFT JOIN log.projection p ON p.name = d.name AND p.version = d.version AND p.shard = $2
 WHERE d.name = $1;

-- name: cursors
-- How far each projection has come in every shard that it has begun, and why it stopped there.
SELECT name, version, shard, frame, error FROM log.projection ORDER BY name, shard;

-- name: tables_of
-- The version of the tables of each projection.
SELECT name, version FROM log.projected;

-- name: start_cursor
-- Begin a projection of a shard at frame 0, if its tables are of this version; does nothing if it has begun.
INSERT INTO log.projection (name, version, shard)
SELECT name, version, $3 FROM log.projected WHERE name = $1 AND version = $2 FOR SHARE
ON CONFLICT (name, version, shard) DO NOTHING;

-- name: move_cursor
-- Move a projection's cursor if it is where the caller thinks, and turn to its tables. Returns a row or none.
-- What a crash of the server takes of such a transaction it takes with the cursor, and the log still has it: nobody waits
-- for the disk. A batch finds its rows by their keys, one by one: by statistics that are older than a queue that has just
-- been filled, the planner would read all of it for the sake of a few.
UPDATE log.projection SET frame = $5, error = NULL
 WHERE name = $1 AND version = $2 AND shard = $3 AND frame = $4
RETURNING frame, set_config('search_path', quote_ident(name), true), set_config('synchronous_commit', 'off', true),
          set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
          set_config('enable_seqscan', 'off', true);

-- name: stop_cursor
-- Note why a projection does not come further.
UPDATE log.projection SET error = $5 WHERE name = $1 AND version = $2 AND shard = $3 AND frame = $4;

-- name: working_set
-- All rows of a shard's working set.
SELECT w.stream, w.ver, w.state FROM log.working_set w JOIN log.shard s ON s.id = w.shard
 WHERE s.name = $1 ORDER BY w.stream;

-- name: save_working_set
-- Move the cursor and rewrite rows, if cursor and epoch are what the owner thinks. Returns 1 or 0.
WITH moved AS (
    UPDATE log.projection SET frame = $5
     WHERE name = 'working_set' AND version = $2 AND shard = (SELECT name FROM log.shard WHERE id = $1)
       AND frame = $4 AND epoch = $3
 RETURNING $1::integer AS shard
), put AS (
    INSERT INTO log.working_set AS w (shard, stream, ver, state)
    SELECT moved.shard, r.stream, r.ver, r.state
      FROM moved, unnest($6::text[], $7::integer[], $8::bytea[]) AS r (stream, ver, state)
        ON CONFLICT (shard, stream) DO UPDATE SET ver = excluded.ver, state = excluded.state
), dropped AS (
    DELETE FROM log.working_set w USING moved WHERE w.shard = moved.shard AND w.stream = ANY ($9::text[])
)
SELECT count(*) FROM moved;

-- name: archived
-- The archived pieces of a shard that hold a position from `$2` on or a frame from `$3` on, oldest first.
SELECT s.name, a.* FROM log.archive a JOIN log.shard s ON s.id = a.shard
 WHERE a.shard = $1 AND a.last_pos >= $2 AND a.last_frame >= $3 ORDER BY a.piece;

-- name: archived_everywhere
-- The archived pieces of all shards.
SELECT s.name, a.* FROM log.archive a JOIN log.shard s ON s.id = a.shard ORDER BY s.name, a.piece;

-- name: archive_lock
-- Become the only archiver of this database, as long as the connection lasts.
SELECT pg_try_advisory_lock(hashtext('kettle.archive'));

-- name: archive_unlock
-- Let others archive.
SELECT pg_advisory_unlock(hashtext('kettle.archive'));

-- name: archivable
-- Each shard with its oldest piece in the database.
SELECT s.id, s.name, s.head, s.frame, s.piece_events,
       coalesce((SELECT max(a.piece) + 1 FROM log.archive a WHERE a.shard = s.id), 0) AS piece
  FROM log.shard s ORDER BY s.name;

-- name: slowest_cursor
-- The cursor in a shard that is furthest behind. A working set at frame 0 was never saved: its shard keeps none.
SELECT name, version, frame, error FROM log.projection
 WHERE shard = $1 AND (name <> 'working_set' OR frame > 0) ORDER BY frame, name, version LIMIT 1;

-- name: last_of_piece
-- Frame and time of the last event in a range of positions.
SELECT frame, at FROM log.event WHERE shard = $1 AND pos >= $2 AND pos < $3 ORDER BY frame DESC, pos DESC LIMIT 1;

-- name: newest_in_piece
-- The latest time in a range of positions: a clock that was set back makes it another than that of the last event.
SELECT max(at) FROM log.event WHERE shard = $1 AND pos >= $2 AND pos < $3;

-- name: piece
-- The events of a range of positions.
SELECT frame, pos, epoch, ver, at, stream, type, data, meta FROM log.event
 WHERE shard = $1 AND pos >= $2 AND pos < $3 ORDER BY frame, pos;

-- name: note_archived
-- A piece is in its files; in the same transaction `drop_piece` has to follow.
INSERT INTO log.archive (
    shard, piece, first_pos, last_pos, first_frame, last_frame, first_at, last_at, rows_sha256,
    events_file, events_bytes, events_sha256, streams_file, streams_bytes, streams_sha256
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15);

-- name: drop_piece
-- Drop the table of a piece.
SELECT log.drop_piece($1, $2);
