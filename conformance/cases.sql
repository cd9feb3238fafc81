-- The statements of the comparison: those before "-- then" run before any tool has started, those after it while the
-- tools follow. Each case is about one table. A line is a statement; psql runs the file too.

-- case: unchanged TOAST (toasted)
CREATE TABLE toasted (id int PRIMARY KEY, small text, big text);
ALTER TABLE toasted ALTER big SET STORAGE EXTERNAL;
INSERT INTO toasted SELECT i, 's' || i, repeat('big' || i, 3000) FROM generate_series(1, 8) i;
-- then
UPDATE toasted SET small = 'changed' WHERE id = 1;
UPDATE toasted SET id = 102 WHERE id = 2;
BEGIN;
UPDATE toasted SET small = 'a' WHERE id = 3;
UPDATE toasted SET small = 'b' WHERE id = 3;
COMMIT;
BEGIN;
UPDATE toasted SET big = repeat('new', 3000) WHERE id = 4;
UPDATE toasted SET small = 'after' WHERE id = 4;
COMMIT;
INSERT INTO toasted VALUES (20, 'n', repeat('inserted', 2000));
UPDATE toasted SET small = 'n2' WHERE id = 20;
UPDATE toasted SET big = NULL WHERE id = 6;

-- case: key changed (moved)
CREATE TABLE moved (id int PRIMARY KEY, v text);
INSERT INTO moved SELECT i, 'v' || i FROM generate_series(1, 5) i;
-- then
UPDATE moved SET id = 101 WHERE id = 1;
UPDATE moved SET id = 103, v = 'moved' WHERE id = 3;

-- case: two keys swapped (swapped)
CREATE TABLE swapped (id int PRIMARY KEY, v text);
INSERT INTO swapped SELECT i, 'v' || i FROM generate_series(1, 5) i;
-- then
BEGIN;
UPDATE swapped SET id = 1004 WHERE id = 4;
UPDATE swapped SET id = 4 WHERE id = 5;
UPDATE swapped SET id = 5 WHERE id = 1004;
COMMIT;

-- case: deletes, and rows that come back (deleted)
CREATE TABLE deleted (id int PRIMARY KEY, v text);
INSERT INTO deleted SELECT i, 'v' || i FROM generate_series(1, 8) i;
-- then
DELETE FROM deleted WHERE id IN (1, 2, 3);
INSERT INTO deleted VALUES (1, 'back'), (11, 'gone');
DELETE FROM deleted WHERE id = 11;
BEGIN;
DELETE FROM deleted WHERE id = 6;
INSERT INTO deleted VALUES (6, 'again');
COMMIT;

-- case: TRUNCATE (truncated)
CREATE TABLE truncated (id int PRIMARY KEY, v text);
INSERT INTO truncated SELECT i, 'v' || i FROM generate_series(1, 8) i;
-- then
TRUNCATE truncated;
INSERT INTO truncated VALUES (100, 'after');

-- case: savepoints and rollbacks (saved)
CREATE TABLE saved (id int PRIMARY KEY, v text);
INSERT INTO saved SELECT i, 'v' || i FROM generate_series(1, 5) i;
-- then
BEGIN;
INSERT INTO saved VALUES (10, 'kept');
SAVEPOINT a;
INSERT INTO saved VALUES (11, 'rolled back');
UPDATE saved SET v = 'rolled back' WHERE id = 1;
ROLLBACK TO a;
UPDATE saved SET v = 'kept' WHERE id = 2;
RELEASE a;
COMMIT;
BEGIN;
INSERT INTO saved SELECT i, 'rolled back' FROM generate_series(100, 200) i;
ROLLBACK;

-- case: ADD COLUMN with a constant DEFAULT (widened)
CREATE TABLE widened (id int PRIMARY KEY, v text);
INSERT INTO widened SELECT i, 'v' || i FROM generate_series(1, 5) i;
-- then
INSERT INTO widened VALUES (6, 'before');
ALTER TABLE widened ADD COLUMN c int NOT NULL DEFAULT 7;
INSERT INTO widened VALUES (7, 'after', 8);
UPDATE widened SET v = 'touched' WHERE id = 1;

-- case: ADD COLUMN with DEFAULT now() (stamped)
CREATE TABLE stamped (id int PRIMARY KEY, v text);
INSERT INTO stamped SELECT i, 'v' || i FROM generate_series(1, 3) i;
-- then
ALTER TABLE stamped ADD COLUMN seen timestamptz DEFAULT now();
INSERT INTO stamped VALUES (7, 'after', '2024-01-01 00:00:00+00');

-- case: ADD COLUMN with a DEFAULT of each row's own (drawn)
CREATE TABLE drawn (id int PRIMARY KEY, v text);
INSERT INTO drawn SELECT i, 'v' || i FROM generate_series(1, 3) i;
-- then
ALTER TABLE drawn ADD COLUMN token uuid DEFAULT gen_random_uuid();
INSERT INTO drawn VALUES (7, 'after', '00000000-0000-4000-8000-000000000001');

-- case: equal rows without a key, REPLICA IDENTITY FULL (keyless)
CREATE TABLE keyless (a int, b text);
ALTER TABLE keyless REPLICA IDENTITY FULL;
INSERT INTO keyless VALUES (1, 'x'), (1, 'x'), (2, NULL), (3, 'y');
-- then
UPDATE keyless SET b = 'z' WHERE a = 3;
DELETE FROM keyless WHERE ctid = (SELECT min(ctid) FROM keyless WHERE a = 1);
UPDATE keyless SET b = 'nn' WHERE a = 2;
INSERT INTO keyless VALUES (4, 'w'), (4, 'w');

-- case: numeric(38,10) to its last digit (numbers)
CREATE TABLE numbers (id int PRIMARY KEY, n numeric(38,10), m numeric(20,0));
INSERT INTO numbers VALUES (1, 1234567890123456789012345678.0123456789, 12345678901234567890), (2, -0.0000000001, 0), (3, NULL, NULL);
-- then
INSERT INTO numbers VALUES (4, 99999999999999.99, 99999999999999999999);
UPDATE numbers SET n = n + 0.0000000001 WHERE id = 1;

-- case: numeric without a bound, of 60 digits (unbounded)
CREATE TABLE unbounded (id int PRIMARY KEY, u numeric);
INSERT INTO unbounded VALUES (1, 123456789012345678901234567890.123456789012345678901234567890), (2, 0.1), (3, 1e20);
-- then
INSERT INTO unbounded VALUES (4, 987654321098765432109876543210.5);
UPDATE unbounded SET u = u + 1 WHERE id = 1;

-- case: NaN as a numeric, with and without a bound (nans)
CREATE TABLE nans (id int PRIMARY KEY, n numeric(12,2), u numeric);
INSERT INTO nans VALUES (1, 'NaN', 'NaN'), (2, 1, 1);
-- then
INSERT INTO nans VALUES (3, 2, 'NaN');
UPDATE nans SET n = 'NaN' WHERE id = 2;

-- case: floats: NaN, infinities, the last bit (floats)
CREATE TABLE floats (id int PRIMARY KEY, d double precision, r real);
INSERT INTO floats VALUES (1, 0.1, 0.1), (2, 1e308, 3.4e38), (3, 'NaN', 'NaN');
-- then
INSERT INTO floats VALUES (4, 0.30000000000000004, 0.3), (5, '-Infinity', 'Infinity'), (6, 5e-324, 1e-45);

-- case: times to the microsecond, also of the year 1 (moments)
CREATE TABLE moments (id int PRIMARY KEY, z timestamptz, s timestamp, d date, t time);
INSERT INTO moments VALUES (1, '2024-05-01 12:34:56.123456+02', '2024-05-01 12:34:56.123456', '2024-02-29', '12:34:56.123456'), (2, '0001-01-01 00:00:00+00', '0001-01-01 00:00:00', '0001-01-01', '00:00');
-- then
INSERT INTO moments VALUES (3, '2262-04-12 00:00:00.000001+00', '2262-04-12 00:00:00.000001', '9999-12-31', '23:59:59.999999');

-- case: infinity in dates and timestamps (endless)
CREATE TABLE endless (id int PRIMARY KEY, z timestamptz, s timestamp, d date);
INSERT INTO endless VALUES (1, 'infinity', 'infinity', 'infinity'), (2, '2024-01-01 00:00:00+00', '2024-01-01', '2024-01-01');
-- then
UPDATE endless SET z = '-infinity', s = '-infinity', d = '-infinity' WHERE id = 2;

-- case: bytea that is no UTF-8 (bytes)
CREATE TABLE bytes (id int PRIMARY KEY, b bytea);
INSERT INTO bytes VALUES (1, '\x00ff80'), (2, ''), (3, NULL);
-- then
INSERT INTO bytes VALUES (4, '\xc328');
UPDATE bytes SET b = '\xfe' WHERE id = 3;

-- case: arrays, empty and with NULL (lists)
CREATE TABLE lists (id int PRIMARY KEY, i int[], t text[]);
INSERT INTO lists VALUES (1, '{}', '{}'), (2, '{1,NULL,3}', '{a,NULL,"","b,c"}'), (3, NULL, NULL);
-- then
UPDATE lists SET i = '{}' WHERE id = 2;
INSERT INTO lists VALUES (4, '{7}', '{"{}"}');

-- case: intervals with months (spans)
CREATE TABLE spans (id int PRIMARY KEY, i interval);
INSERT INTO spans VALUES (1, '1 mon 2 days'), (2, '-1 day');
-- then
INSERT INTO spans VALUES (3, '1 year 2 mons 00:00:00.000001');

-- case: 24:00 as a time (midnights)
CREATE TABLE midnights (id int PRIMARY KEY, t time);
INSERT INTO midnights VALUES (1, '24:00'), (2, '00:00');
-- then
UPDATE midnights SET t = '24:00' WHERE id = 2;

-- case: NULL beside empty texts, and jsonb's null (empties)
CREATE TABLE empties (id int PRIMARY KEY, a text, b text, j jsonb);
INSERT INTO empties VALUES (1, '', NULL, 'null'), (2, NULL, '', NULL), (3, 'NULL', '\N', '{"a": null}');
-- then
UPDATE empties SET a = NULL, b = '' WHERE id = 1;
UPDATE empties SET a = '', b = NULL WHERE id = 2;
INSERT INTO empties VALUES (4, '', NULL, '""');
