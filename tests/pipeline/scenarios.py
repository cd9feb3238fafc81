"""Scenarios of logical replication as statements, each in a schema of its own.

They follow the subjects of PostgreSQL's own tests of subscriptions; `test_subscription_scenarios` says which is which.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Scenario:
    """Statements in a schema, and the tables that a copy has of it afterwards."""

    name: str
    """The schema."""
    setup: str
    """The statements before the tables are loaded; a statement ends with `;` at the end of a line."""
    following: str = ""
    """The statements while replicate runs."""
    between: str = ""
    """The statements between two runs."""
    tables: tuple[str, ...] = ()
    """The tables whose copies must be equal, and that a load never replaces."""
    loaded_again: tuple[str, ...] = ()
    """The tables whose copies must be equal, however they came to be so."""
    queries: Mapping[str, str] = field(default_factory=dict)
    """For tables whose copy lacks some rows: the query of the copy's rows."""
    absent: tuple[str, ...] = ()
    """The relations that are not replicated."""
    since: int = 10
    """The first major version that has the statements."""
    published: str = ""
    """The entries of a user's publication, where the scenario is about one."""

    def query(self, table: str) -> str:
        """Return the query of the rows that the copy of a table must have."""
        return self.queries.get(table, f"SELECT * FROM {self.qualified(table)}")

    def qualified(self, table: str) -> str:
        """Return a table's name with its schema."""
        return table if "." in table else f"{self.name}.{table}"


def statements(text: str) -> Iterator[str]:
    """Yield the statements of a text."""
    for statement in text.strip().split(";\n"):
        if statement.strip():
            yield statement.strip().removesuffix(";")


CHANGES = Scenario(
    "changes",
    """
    CREATE TABLE rep (a int PRIMARY KEY);
    CREATE TABLE whole AS SELECT generate_series(1, 10) AS a;
    ALTER TABLE whole REPLICA IDENTITY FULL;
    CREATE TABLE whole_text (x text);
    ALTER TABLE whole_text REPLICA IDENTITY FULL;
    INSERT INTO whole_text VALUES ('a'), ('b'), ('b'), (NULL);
    CREATE TABLE whole_keyed (a int PRIMARY KEY, b text);
    ALTER TABLE whole_keyed REPLICA IDENTITY FULL;
    INSERT INTO whole_keyed VALUES (1, 'foo'), (2, 'bar'), (3, 'baz');
    CREATE TABLE mixed (b text, a int PRIMARY KEY, c numeric);
    INSERT INTO mixed VALUES ('foo', 1, 1.1);
    CREATE TABLE covering (b text, a int, c text, PRIMARY KEY (a) INCLUDE (b));
    CREATE TABLE by_covering (b text, a int NOT NULL, c text);
    CREATE UNIQUE INDEX by_covering_index ON by_covering (a) INCLUDE (b);
    ALTER TABLE by_covering REPLICA IDENTITY USING INDEX by_covering_index;
    INSERT INTO covering SELECT 'b' || i, i, repeat('long', i * 1000) FROM generate_series(1, 5) AS i;
    INSERT INTO by_covering SELECT * FROM covering;
    CREATE TABLE two_unique (a int UNIQUE NOT NULL, b int UNIQUE NOT NULL);
    ALTER TABLE two_unique REPLICA IDENTITY USING INDEX two_unique_b_key;
    INSERT INTO two_unique SELECT i, 10 - i FROM generate_series(1, 9) AS i;
    CREATE TABLE postponed (id int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, v text);
    ALTER TABLE postponed REPLICA IDENTITY FULL;
    INSERT INTO postponed SELECT i, 'v' || i FROM generate_series(1, 9) AS i;
    CREATE TABLE postponed_beside (id int PRIMARY KEY, v int UNIQUE DEFERRABLE INITIALLY DEFERRED);
    INSERT INTO postponed_beside SELECT i, i FROM generate_series(1, 9) AS i;
    CREATE TABLE mute (a int PRIMARY KEY);
    ALTER TABLE mute REPLICA IDENTITY NOTHING;
    CREATE TABLE bare (a int);
    CREATE TABLE only_postponed (id int PRIMARY KEY DEFERRABLE);
    CREATE TABLE parent (a int PRIMARY KEY, b text);
    CREATE TABLE child (c text, PRIMARY KEY (a)) INHERITS (parent);
    """,
    """
    INSERT INTO rep SELECT generate_series(1, 50);
    DELETE FROM rep WHERE a > 20;
    UPDATE rep SET a = -a;
    INSERT INTO whole SELECT generate_series(1, 10);
    UPDATE whole SET a = a * a;
    DELETE FROM whole WHERE ctid = (SELECT min(ctid) FROM whole WHERE a = 100);
    UPDATE whole_text SET x = 'bb' WHERE x = 'b';
    UPDATE whole_text SET x = NULL WHERE x = 'a';
    DELETE FROM whole_text WHERE ctid = (SELECT min(ctid) FROM whole_text WHERE x IS NULL);
    INSERT INTO whole_keyed VALUES (4, NULL);
    UPDATE whole_keyed SET b = b;
    UPDATE whole_keyed SET a = a + 10 WHERE a < 3;
    DELETE FROM whole_keyed WHERE b = 'baz';
    INSERT INTO mixed VALUES ('bar', 2, 2.2), ('baz', 3, 'NaN');
    UPDATE mixed SET b = NULL WHERE a = 1;
    UPDATE covering SET b = b || '!' WHERE a < 3;
    UPDATE covering SET a = a + 100 WHERE a > 3;
    DELETE FROM covering WHERE a = 3;
    UPDATE by_covering SET b = b || '!' WHERE a < 3;
    UPDATE by_covering SET a = a + 100 WHERE a > 3;
    DELETE FROM by_covering WHERE a = 3;
    UPDATE two_unique SET a = -a;
    UPDATE two_unique SET b = b + 100 WHERE a < -5;
    DELETE FROM two_unique WHERE b = 1;
    UPDATE postponed SET id = 10 - id;
    DELETE FROM postponed WHERE id = 3;
    UPDATE postponed_beside SET v = 10 - v;
    INSERT INTO mute VALUES (1), (2);
    UPDATE mute SET a = a + 10;
    DELETE FROM mute WHERE a = 11;
    INSERT INTO bare VALUES (1), (2);
    UPDATE bare SET a = a + 10;
    INSERT INTO only_postponed VALUES (1), (2);
    DELETE FROM only_postponed WHERE id = 1;
    INSERT INTO parent VALUES (1, 'one'), (2, 'two');
    INSERT INTO child VALUES (1, 'one', 'more'), (3, 'three', 'more');
    UPDATE parent SET b = b || '!';
    DELETE FROM ONLY parent WHERE a = 2;
    """,
    """
    BEGIN;
    DELETE FROM rep;
    INSERT INTO rep VALUES (-1), (1);
    UPDATE rep SET a = 0 WHERE a = 1;
    COMMIT;
    UPDATE postponed SET id = 10 - id;
    UPDATE by_covering SET c = 'short' WHERE a = 1;
    DELETE FROM parent WHERE a = 3;
    """,
    tables=(
        "rep",
        "whole",
        "whole_text",
        "whole_keyed",
        "mixed",
        "covering",
        "by_covering",
        "two_unique",
        "postponed",
        "postponed_beside",
        "parent",
        "child",
    ),
    queries={"parent": "SELECT * FROM ONLY changes.parent"},
    absent=("mute", "bare", "only_postponed"),
    since=11,
)

TYPES = Scenario(
    "types",
    """
    CREATE TYPE mood AS ENUM ('a', 'b', 'c');
    CREATE TYPE basic AS (a float, b text, c int);
    CREATE TYPE with_enum AS (a float, b mood, c int);
    CREATE TYPE with_arrays AS (a mood[], b basic[], c text[]);
    CREATE DOMAIN small AS int CHECK (value > 0);
    CREATE DOMAIN small_pair AS int[] CHECK (array_length(value, 1) = 2);
    CREATE TABLE arrays (id serial PRIMARY KEY, a int[], b text[], c numeric[], d timestamptz[]);
    CREATE TABLE enums (a mood PRIMARY KEY, b mood[]);
    CREATE TABLE composites (a basic PRIMARY KEY, b with_enum, c with_arrays[]);
    CREATE TABLE ranges (a int4range PRIMARY KEY, b numrange, c tstzrange[], d daterange);
    CREATE TABLE domains (a small PRIMARY KEY, b small_pair, c small[]);
    INSERT INTO arrays (a, b, c, d) VALUES
        ('{1,2,3}', '{"a","b c",NULL,"NULL"}', '{1.1,NaN}', '{"2020-01-01 00:00:00.000001+02"}'),
        ('{}', '{}', NULL, '{NULL}');
    INSERT INTO enums VALUES ('a', '{b,c}'), ('b', '{}');
    INSERT INTO composites VALUES ((1.0, 'a', 1), (1.0, 'a', 1), ARRAY[(ARRAY['a']::mood[], ARRAY[(1, 'x,"y', 2)]::basic[], ARRAY['NULL', NULL, ''])]::with_arrays[]);
    INSERT INTO ranges VALUES ('[1,10]', '(0,)', '{"[2020-01-01 00:00+00,)"}', 'empty'), ('empty', NULL, '{}', NULL);
    INSERT INTO domains VALUES (1, '{1,2}', '{3}'), (2, NULL, NULL);
    """,
    """
    UPDATE arrays SET a = a || 4, b = array_append(b, 'more'), d = NULL WHERE id = 1;
    INSERT INTO arrays (a) VALUES ('{NULL}'), (NULL);
    UPDATE enums SET a = 'c', b = '{a,NULL}' WHERE a = 'a';
    INSERT INTO composites VALUES ((2.5, NULL, NULL), NULL, '{}'), ((3.5, '', 3), (0, 'c', NULL), NULL);
    UPDATE composites SET a = (1.0, 'b', 1), b = (2.0, 'b', 2) WHERE (a).c = 1;
    DELETE FROM composites WHERE (a).c = 3;
    UPDATE ranges SET a = '[1,12)', b = 'empty' WHERE a = '[1,10]';
    DELETE FROM ranges WHERE a = 'empty';
    UPDATE domains SET a = 3, c = '{4,5}' WHERE a = 1;
    DELETE FROM domains WHERE a = 2;
    INSERT INTO domains VALUES (5, '{5,6}', '{}');
    """,
    tables=("arrays", "enums", "composites", "ranges", "domains"),
    # The driver has no lists for arrays of types that a user made.
    queries={
        "enums": "SELECT a, b::text[] FROM types.enums",
        "composites": "SELECT a, b, c::text[] FROM types.composites",
        "ranges": "SELECT a, b, c::text[], d FROM types.ranges",
        "domains": "SELECT a, b, c::text[] FROM types.domains",
    },
)

CONSTRAINTS = Scenario(
    "constraints",
    """
    CREATE TABLE branch (bid int PRIMARY KEY, junk text);
    CREATE TABLE cascading (id int PRIMARY KEY, bid int REFERENCES branch ON DELETE CASCADE ON UPDATE CASCADE);
    CREATE TABLE in_key (bid int REFERENCES branch ON UPDATE CASCADE ON DELETE CASCADE, n int, PRIMARY KEY (bid, n));
    CREATE TABLE to_null (id int PRIMARY KEY, bid int REFERENCES branch ON DELETE SET NULL ON UPDATE SET NULL);
    CREATE TABLE to_default (id int PRIMARY KEY, bid int DEFAULT 0 REFERENCES branch ON DELETE SET DEFAULT);
    CREATE TABLE itself (id int PRIMARY KEY, parent int REFERENCES itself ON DELETE CASCADE);
    CREATE TABLE later (id int PRIMARY KEY, bid int REFERENCES branch DEFERRABLE INITIALLY DEFERRED);
    INSERT INTO branch SELECT i, repeat('x', i) FROM generate_series(0, 9) AS i;
    INSERT INTO cascading SELECT i, i % 10 FROM generate_series(1, 40) AS i;
    INSERT INTO in_key SELECT i % 10, i FROM generate_series(1, 40) AS i;
    INSERT INTO to_null SELECT i, i % 10 FROM generate_series(1, 40) AS i;
    INSERT INTO to_default SELECT i, i % 10 FROM generate_series(1, 40) AS i;
    INSERT INTO itself SELECT i, nullif(i / 2, 0) FROM generate_series(1, 40) AS i;
    CREATE TABLE watched (id int PRIMARY KEY, v text);
    CREATE TABLE log (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, what text, old text, new text);
    CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.v = 'refused' THEN RETURN NULL; END IF; NEW.v := upper(NEW.v); RETURN NEW; END $$;
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO constraints.log (what, old, new) VALUES (TG_OP, CASE WHEN TG_OP <> 'INSERT' THEN OLD.v END, CASE WHEN TG_OP <> 'DELETE' THEN NEW.v END); RETURN NULL; END $$;
    CREATE TRIGGER changing BEFORE INSERT OR UPDATE ON watched FOR EACH ROW EXECUTE FUNCTION change();
    CREATE TRIGGER noting AFTER INSERT OR UPDATE OR DELETE ON watched FOR EACH ROW EXECUTE FUNCTION note();
    CREATE RULE softly AS ON DELETE TO watched WHERE old.id > 100 DO INSTEAD UPDATE watched SET v = 'gone' WHERE id = old.id;
    """,
    """
    DELETE FROM branch WHERE bid IN (3, 4);
    BEGIN;
    INSERT INTO later VALUES (1, 77);
    INSERT INTO branch VALUES (77, 'late');
    COMMIT;
    DELETE FROM itself WHERE id = 3;
    INSERT INTO watched VALUES (1, 'one'), (2, 'refused'), (101, 'two') ON CONFLICT (id) DO NOTHING;
    INSERT INTO watched VALUES (1, 'again') ON CONFLICT (id) DO UPDATE SET v = EXCLUDED.v || watched.v;
    UPDATE watched SET v = 'refused' WHERE id = 101;
    DELETE FROM watched;
    """,
    """
    DELETE FROM to_default WHERE bid = 5;
    BEGIN;
    DELETE FROM to_null;
    DELETE FROM to_default;
    UPDATE branch SET bid = bid + 1000 WHERE bid > 6 AND bid < 77;
    COMMIT;
    """,
    tables=("branch", "cascading", "in_key", "to_null", "to_default", "itself", "later", "watched", "log"),
    since=11,
)

NEW_TABLES = Scenario(
    "new_tables",
    """
    CREATE TABLE there (a int PRIMARY KEY);
    INSERT INTO there SELECT generate_series(1, 10);
    CREATE TABLE anew (a int PRIMARY KEY);
    INSERT INTO anew SELECT generate_series(1, 10);
    """,
    """
    CREATE TABLE filled AS SELECT i AS a, 'text' AS b FROM generate_series(1, 20) AS i;
    ALTER TABLE filled ADD PRIMARY KEY (a);
    INSERT INTO filled VALUES (100, 'later');
    DROP TABLE anew;
    CREATE TABLE anew (b text, a int PRIMARY KEY);
    INSERT INTO anew SELECT 'text', i FROM generate_series(5, 15) AS i;
    CREATE TABLE passing (a int PRIMARY KEY);
    INSERT INTO passing VALUES (1);
    DROP TABLE passing;
    INSERT INTO there VALUES (11);
    """,
    """
    CREATE TABLE last (a int PRIMARY KEY, b text);
    INSERT INTO last VALUES (1, 'one');
    UPDATE filled SET b = 'changed' WHERE a < 5;
    """,
    tables=("there",),
    loaded_again=("filled", "anew", "last"),
)

REWRITES = Scenario(
    "rewrites",
    """
    CREATE TABLE changing (a int PRIMARY KEY, b text);
    INSERT INTO changing SELECT i, 'b' || i FROM generate_series(1, 20) AS i;
    CREATE TABLE clustered (a int PRIMARY KEY, b text);
    INSERT INTO clustered SELECT i, 'b' || i FROM generate_series(1, 20) AS i;
    CREATE TABLE wider (a int PRIMARY KEY, b int, c varchar(10));
    INSERT INTO wider SELECT i, i, 'c' || i FROM generate_series(1, 20) AS i;
    """,
    """
    ALTER TABLE changing ADD c int NOT NULL DEFAULT 0;
    INSERT INTO changing VALUES (30, 'c', 30);
    ALTER TABLE changing ADD d double precision DEFAULT random();
    UPDATE changing SET c = 1 WHERE a < 4;
    CLUSTER clustered USING clustered_pkey;
    DELETE FROM clustered WHERE a > 15;
    VACUUM FULL clustered;
    UPDATE clustered SET b = 'rewritten' WHERE a < 4;
    ALTER TABLE wider ALTER b TYPE bigint;
    INSERT INTO wider VALUES (30, 3000000000, 'c');
    ALTER TABLE wider ALTER c TYPE text;
    UPDATE wider SET c = repeat('long', 100) WHERE a < 4;
    """,
    """
    BEGIN;
    INSERT INTO changing VALUES (31, 'before', 1, 0.5);
    ALTER TABLE changing ADD e timestamptz DEFAULT clock_timestamp();
    INSERT INTO changing VALUES (32, 'after', 1, 0.5, NULL);
    COMMIT;
    """,
    loaded_again=("changing", "clustered", "wider"),
)

MATERIALIZED = Scenario(
    "materialized",
    """
    CREATE TABLE base (a int PRIMARY KEY, b int);
    INSERT INTO base SELECT i, i % 3 FROM generate_series(1, 30) AS i;
    CREATE MATERIALIZED VIEW sums AS SELECT b, sum(a) AS s FROM base GROUP BY b;
    CREATE UNIQUE INDEX ON sums (b);
    CREATE VIEW seen AS SELECT * FROM base WHERE b = 1;
    """,
    """
    INSERT INTO base VALUES (100, 1);
    REFRESH MATERIALIZED VIEW sums;
    BEGIN;
    INSERT INTO base VALUES (101, 4);
    REFRESH MATERIALIZED VIEW sums;
    DELETE FROM base WHERE a < 3;
    COMMIT;
    REFRESH MATERIALIZED VIEW CONCURRENTLY sums;
    UPDATE seen SET a = a + 1000;
    CREATE MATERIALIZED VIEW more AS SELECT * FROM base;
    DROP MATERIALIZED VIEW more;
    """,
    """
    REFRESH MATERIALIZED VIEW CONCURRENTLY sums;
    DELETE FROM seen WHERE a > 1020;
    """,
    tables=("base",),
    absent=("sums", "seen", "more"),
)

TRUNCATES = Scenario(
    "truncates",
    """
    CREATE TABLE plain (a int PRIMARY KEY);
    CREATE TABLE counted (id serial PRIMARY KEY, v text);
    CREATE TABLE owner (a int PRIMARY KEY);
    CREATE TABLE referring (a int PRIMARY KEY, o int REFERENCES owner);
    CREATE TABLE farther (a int PRIMARY KEY, r int REFERENCES referring);
    CREATE TABLE whole (v int);
    ALTER TABLE whole REPLICA IDENTITY FULL;
    CREATE TABLE parent (a int PRIMARY KEY);
    CREATE TABLE child (PRIMARY KEY (a)) INHERITS (parent);
    CREATE TABLE parts (a int PRIMARY KEY) PARTITION BY RANGE (a);
    CREATE TABLE parts_low PARTITION OF parts FOR VALUES FROM (0) TO (10);
    CREATE TABLE parts_high PARTITION OF parts FOR VALUES FROM (10) TO (100);
    INSERT INTO plain SELECT generate_series(1, 9);
    INSERT INTO counted (v) SELECT 'v' || i FROM generate_series(1, 9) AS i;
    INSERT INTO owner SELECT generate_series(1, 9);
    INSERT INTO referring SELECT i, i FROM generate_series(1, 9) AS i;
    INSERT INTO farther SELECT i, i FROM generate_series(1, 9) AS i;
    INSERT INTO whole SELECT i / 2 FROM generate_series(1, 9) AS i;
    INSERT INTO parent SELECT generate_series(1, 9);
    INSERT INTO child SELECT generate_series(10, 19);
    INSERT INTO parts SELECT generate_series(1, 40);
    """,
    """
    TRUNCATE plain;
    INSERT INTO plain VALUES (1), (2), (3);
    TRUNCATE counted RESTART IDENTITY;
    INSERT INTO counted (v) VALUES ('first'), ('second');
    TRUNCATE owner CASCADE;
    INSERT INTO owner VALUES (1), (2);
    INSERT INTO referring VALUES (5, 1);
    BEGIN;
    INSERT INTO whole VALUES (100);
    TRUNCATE whole, plain;
    INSERT INTO whole VALUES (200), (200);
    SAVEPOINT s;
    TRUNCATE whole;
    INSERT INTO whole VALUES (300);
    ROLLBACK TO s;
    COMMIT;
    TRUNCATE ONLY parent;
    INSERT INTO parent VALUES (1);
    TRUNCATE parts;
    INSERT INTO parts VALUES (5), (55);
    """,
    """
    TRUNCATE parent;
    INSERT INTO child VALUES (20);
    BEGIN;
    TRUNCATE counted RESTART IDENTITY CASCADE;
    INSERT INTO counted (v) VALUES ('third');
    TRUNCATE counted;
    INSERT INTO counted (v) VALUES ('fourth');
    COMMIT;
    BEGIN;
    TRUNCATE plain;
    ROLLBACK;
    INSERT INTO plain VALUES (7);
    """,
    tables=("plain", "counted", "owner", "referring", "farther", "whole", "parent", "child"),
    # The truncate of one partition, which is not sent, leaves the same traces in the catalog.
    loaded_again=("parts",),
    queries={"parent": "SELECT * FROM ONLY truncates.parent"},
    since=12,
)

GENERATED = Scenario(
    "generated",
    """
    CREATE TABLE stored (a int PRIMARY KEY, b int GENERATED ALWAYS AS (a * 2) STORED, c text);
    CREATE TABLE between_them (g text GENERATED ALWAYS AS (upper(c)) STORED, a int PRIMARY KEY, c text);
    INSERT INTO stored (a, c) VALUES (1, 'one'), (2, 'two'), (3, NULL);
    INSERT INTO between_them (a, c) VALUES (1, 'one'), (2, 'two'), (3, NULL);
    """,
    """
    INSERT INTO stored (a, c) VALUES (4, 'four');
    UPDATE stored SET a = 6 WHERE a = 2;
    UPDATE stored SET c = 'three' WHERE a = 3;
    INSERT INTO between_them (a, c) VALUES (4, 'four');
    UPDATE between_them SET a = 6 WHERE a = 2;
    UPDATE between_them SET c = 'three' WHERE a = 3;
    DELETE FROM between_them WHERE a = 1;
    """,
    tables=("stored", "between_them"),
    queries={"stored": "SELECT a, c FROM generated.stored", "between_them": "SELECT a, c FROM generated.between_them"},
    since=12,
)

VIRTUAL = Scenario(
    "virtual",
    """
    CREATE TABLE computed (a int PRIMARY KEY, b int GENERATED ALWAYS AS (a * 2) VIRTUAL, c text);
    INSERT INTO computed (a, c) VALUES (1, 'one'), (2, 'two');
    """,
    """
    INSERT INTO computed (a, c) VALUES (4, 'four');
    UPDATE computed SET a = 6 WHERE a = 2;
    DELETE FROM computed WHERE a = 1;
    """,
    tables=("computed",),
    queries={"computed": "SELECT a, c FROM virtual.computed"},
    since=18,
)

COLLATIONS = Scenario(
    "collations",
    """
    CREATE COLLATION ignoring (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
    CREATE TABLE keyed (a text COLLATE ignoring PRIMARY KEY, b text);
    CREATE TABLE whole (a text COLLATE ignoring, b int);
    ALTER TABLE whole REPLICA IDENTITY FULL;
    CREATE TABLE by_two (a text COLLATE ignoring, b text COLLATE "C", v int, PRIMARY KEY (a, b));
    INSERT INTO keyed VALUES ('one', 'small'), ('TWO', 'large'), (U&'\\00E4', 'one character'), (U&'o\\0308', 'two');
    INSERT INTO whole VALUES ('one', 1), ('ONE', 1), ('One', 1), (U&'\\00E4', 2), (U&'a\\0308', 2);
    INSERT INTO by_two VALUES ('a', 'a', 1), ('A', 'A', 2);
    """,
    """
    UPDATE keyed SET a = 'ONE' WHERE a = 'One';
    UPDATE keyed SET b = 'changed' WHERE a = 'two';
    UPDATE keyed SET a = U&'a\\0308' WHERE a = U&'\\00E4';
    INSERT INTO keyed VALUES ('ONE', 'conflicts') ON CONFLICT (a) DO UPDATE SET a = EXCLUDED.a, b = EXCLUDED.b;
    DELETE FROM whole WHERE ctid = (SELECT max(ctid) FROM whole WHERE a = 'one');
    UPDATE whole SET b = 3 WHERE ctid = (SELECT min(ctid) FROM whole WHERE a = 'one');
    UPDATE by_two SET v = 10 WHERE a = 'A' AND b = 'A';
    UPDATE by_two SET a = 'A' WHERE b = 'a';
    """,
    """
    DELETE FROM keyed WHERE a = 'tWo';
    UPDATE keyed SET a = lower(a) WHERE a = 'one';
    """,
    tables=("keyed", "whole", "by_two"),
    since=12,
)

PARTITIONS = Scenario(
    "partitions",
    """
    CREATE TABLE root (a int PRIMARY KEY, b text) PARTITION BY LIST (a);
    CREATE TABLE other_order (b text, a int NOT NULL);
    ALTER TABLE root ATTACH PARTITION other_order FOR VALUES IN (1, 2, 3);
    CREATE TABLE divided PARTITION OF root FOR VALUES IN (4, 5, 6) PARTITION BY LIST (a);
    CREATE TABLE divided_leaf (dropped int, b text, a int NOT NULL);
    ALTER TABLE divided_leaf DROP COLUMN dropped;
    ALTER TABLE divided ATTACH PARTITION divided_leaf FOR VALUES IN (4, 5, 6);
    CREATE TABLE rest PARTITION OF root DEFAULT;
    CREATE TABLE whole (a int, b text) PARTITION BY RANGE (a);
    CREATE TABLE whole_low PARTITION OF whole FOR VALUES FROM (0) TO (10);
    CREATE TABLE whole_high PARTITION OF whole FOR VALUES FROM (10) TO (20);
    ALTER TABLE whole REPLICA IDENTITY FULL;
    ALTER TABLE whole_low REPLICA IDENTITY FULL;
    ALTER TABLE whole_high REPLICA IDENTITY FULL;
    INSERT INTO root SELECT i, 'b' || i FROM generate_series(1, 9) AS i;
    INSERT INTO whole SELECT i / 2, 'same' FROM generate_series(1, 30) AS i;
    """,
    """
    INSERT INTO root VALUES (0, 'rest'), (10, NULL);
    DELETE FROM root WHERE a = 3;
    INSERT INTO other_order (a) VALUES (3);
    UPDATE root SET a = 30 WHERE a = 2;
    UPDATE root SET a = 2 WHERE a = 5;
    UPDATE divided SET b = 'changed' WHERE a = 4;
    DELETE FROM rest WHERE a = 0;
    CREATE TABLE more PARTITION OF root FOR VALUES IN (1000, 1001);
    INSERT INTO root VALUES (1000, repeat('long', 2000));
    UPDATE root SET a = 1001 WHERE a = 1000;
    UPDATE whole SET a = a + 10 WHERE a BETWEEN 3 AND 5;
    DELETE FROM whole WHERE ctid = (SELECT min(ctid) FROM whole_low WHERE a = 1) AND tableoid = 'whole_low'::regclass;
    """,
    """
    UPDATE root SET a = a + 2000 WHERE a > 6;
    DELETE FROM whole_high WHERE a > 14;
    """,
    loaded_again=("root",),
    tables=("whole",),
    absent=("other_order", "divided", "rest", "whole_low"),
    since=13,
)

STREAMED = Scenario(
    "streamed",
    """
    CREATE TABLE rows (a int PRIMARY KEY, b text);
    CREATE TABLE other (a int PRIMARY KEY);
    INSERT INTO rows VALUES (1, 'foo'), (2, 'bar');
    CREATE TABLE altered (a int PRIMARY KEY, b text);
    INSERT INTO altered VALUES (1, 'foo'), (2, 'bar');
    """,
    """
    BEGIN;
    INSERT INTO rows SELECT i, md5(i::text) FROM generate_series(3, 5000) AS i;
    UPDATE rows SET b = md5(b) WHERE a % 2 = 0;
    DELETE FROM rows WHERE a % 3 = 0;
    COMMIT;
    BEGIN;
    INSERT INTO rows SELECT i, md5(i::text) FROM generate_series(5001, 5500) AS i;
    SAVEPOINT s1;
    INSERT INTO rows SELECT i, md5(i::text) FROM generate_series(5501, 6000) AS i;
    SAVEPOINT s2;
    UPDATE rows SET b = 's2' WHERE a > 5400;
    SAVEPOINT s3;
    DELETE FROM rows WHERE a % 5 = 0;
    RELEASE s2;
    COMMIT;
    BEGIN;
    INSERT INTO rows SELECT i, md5(i::text) FROM generate_series(6001, 6500) AS i;
    SAVEPOINT s1;
    DELETE FROM rows;
    ROLLBACK TO s1;
    SAVEPOINT s2;
    INSERT INTO rows SELECT i, md5(i::text) FROM generate_series(6501, 7000) AS i;
    SAVEPOINT s3;
    UPDATE rows SET a = a + 100000 WHERE a > 6000;
    ROLLBACK TO s3;
    INSERT INTO other VALUES (1);
    RELEASE s2;
    COMMIT;
    BEGIN;
    INSERT INTO other SELECT generate_series(100, 3000);
    SAVEPOINT s1;
    INSERT INTO other SELECT generate_series(3001, 6000);
    ROLLBACK;
    """,
    """
    BEGIN;
    INSERT INTO altered SELECT i, md5(i::text) FROM generate_series(3, 1000) AS i;
    ALTER TABLE altered ADD COLUMN c int;
    SAVEPOINT s1;
    INSERT INTO altered SELECT i, md5(i::text), -i FROM generate_series(1001, 2000) AS i;
    ALTER TABLE altered ADD COLUMN d int;
    SAVEPOINT s2;
    INSERT INTO altered SELECT i, md5(i::text), -i, 2 * i FROM generate_series(2001, 3000) AS i;
    ROLLBACK TO s2;
    ALTER TABLE altered ADD COLUMN e int;
    UPDATE altered SET e = 5 WHERE a % 10 = 0;
    COMMIT;
    """,
    tables=("rows", "other"),
    loaded_again=("altered",),
)

MESSAGES = Scenario(
    "messages",
    "CREATE TABLE t (a int PRIMARY KEY);\nINSERT INTO t VALUES (1);\n",
    """
    SELECT pg_logical_emit_message(true, 'prefix', 'a transactional message');
    SELECT pg_logical_emit_message(false, 'prefix', repeat('other', 50000));
    BEGIN;
    INSERT INTO t VALUES (2);
    SELECT pg_logical_emit_message(true, 'prefix', 'with a row');
    SELECT pg_logical_emit_message(false, 'prefix', 'at once');
    SAVEPOINT s;
    SELECT pg_logical_emit_message(true, 'prefix', 'gone');
    INSERT INTO t VALUES (3);
    ROLLBACK TO s;
    COMMIT;
    BEGIN;
    INSERT INTO t VALUES (4);
    SELECT pg_logical_emit_message(false, 'prefix', 'stays');
    ROLLBACK;
    """,
    tables=("t",),
)

TWO_PHASE = Scenario(
    "two_phase",
    "CREATE TABLE t (a int PRIMARY KEY, b text);\nINSERT INTO t SELECT i, 'b' FROM generate_series(1, 10) AS i;\n",
    """
    BEGIN;
    INSERT INTO t VALUES (11, 'committed');
    PREPARE TRANSACTION 'two_phase_1';
    BEGIN;
    UPDATE t SET b = 'rolled back' WHERE a = 1;
    PREPARE TRANSACTION 'two_phase_2';
    INSERT INTO t VALUES (12, 'between');
    COMMIT PREPARED 'two_phase_1';
    ROLLBACK PREPARED 'two_phase_2';
    BEGIN;
    INSERT INTO t SELECT i, md5(i::text) FROM generate_series(100, 2000) AS i;
    SAVEPOINT s;
    DELETE FROM t WHERE a > 1000;
    ROLLBACK TO s;
    UPDATE t SET b = 'streamed' WHERE a % 7 = 0;
    PREPARE TRANSACTION 'two_phase_3';
    INSERT INTO t VALUES (13, 'between');
    COMMIT PREPARED 'two_phase_3';
    BEGIN;
    TRUNCATE t;
    INSERT INTO t VALUES (1, 'truncated');
    PREPARE TRANSACTION 'two_phase_4';
    ROLLBACK PREPARED 'two_phase_4';
    """,
    """
    BEGIN;
    DELETE FROM t WHERE a > 1500;
    PREPARE TRANSACTION 'two_phase_5';
    COMMIT PREPARED 'two_phase_5';
    """,
    tables=("t",),
)

WHOLE_ROWS = Scenario(
    "whole_rows",
    """
    CREATE TABLE no_index (x int, y text);
    CREATE TABLE expression_index (first text, last text);
    CREATE INDEX ON expression_index ((first || ' ' || last));
    CREATE TABLE partial_index (x int, y text);
    CREATE INDEX ON partial_index (x) WHERE y IS NULL;
    CREATE UNIQUE INDEX ON partial_index (x) WHERE x > 1000;
    CREATE TABLE hashed (x int, y jsonb, z float);
    CREATE INDEX ON hashed USING hash (x);
    CREATE TABLE nullable_unique (x int UNIQUE, y text);
    ALTER TABLE no_index REPLICA IDENTITY FULL;
    ALTER TABLE expression_index REPLICA IDENTITY FULL;
    ALTER TABLE partial_index REPLICA IDENTITY FULL;
    ALTER TABLE hashed REPLICA IDENTITY FULL;
    ALTER TABLE nullable_unique REPLICA IDENTITY FULL;
    INSERT INTO no_index SELECT i % 3, CASE WHEN i % 2 = 0 THEN 'even' END FROM generate_series(1, 60) AS i;
    INSERT INTO expression_index SELECT 'first_' || i % 5, 'last' FROM generate_series(1, 20) AS i;
    INSERT INTO partial_index SELECT i % 4, CASE WHEN i % 2 = 0 THEN 'even' END FROM generate_series(1, 40) AS i;
    INSERT INTO hashed SELECT i % 4, '{"a": [1, 2.50]}', (CASE i % 3 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0' ELSE '0' END)::float FROM generate_series(1, 24) AS i;
    INSERT INTO nullable_unique VALUES (NULL, 'a'), (NULL, 'a'), (1, 'b');
    """,
    """
    UPDATE no_index SET x = 20 WHERE x = 1;
    DELETE FROM no_index WHERE x = 2 AND y IS NULL;
    DELETE FROM no_index WHERE ctid IN (SELECT ctid FROM no_index WHERE x = 20 AND y = 'even' LIMIT 3);
    UPDATE expression_index SET first = 'other' WHERE first = 'first_1';
    DELETE FROM expression_index WHERE first = 'first_2';
    UPDATE partial_index SET y = 'changed' WHERE y IS NULL AND x = 1;
    DELETE FROM partial_index WHERE x = 3;
    UPDATE hashed SET z = 5 WHERE x = 1;
    DELETE FROM hashed WHERE z = 'NaN' AND x = 2;
    UPDATE nullable_unique SET y = 'c' WHERE ctid = (SELECT min(ctid) FROM nullable_unique WHERE x IS NULL);
    """,
    "UPDATE no_index SET y = NULL;\nDELETE FROM hashed WHERE x = 0;\n",
    tables=("no_index", "expression_index", "partial_index", "hashed", "nullable_unique"),
)

TEMPORAL = Scenario(
    "temporal",
    """
    CREATE TABLE keyed (id int4range, valid_at daterange, a text, PRIMARY KEY (id, valid_at WITHOUT OVERLAPS));
    CREATE TABLE by_index (id int4range NOT NULL, valid_at daterange NOT NULL, a text, CONSTRAINT by_index_unique UNIQUE (id, valid_at WITHOUT OVERLAPS));
    ALTER TABLE by_index REPLICA IDENTITY USING INDEX by_index_unique;
    CREATE TABLE whole (LIKE keyed);
    ALTER TABLE whole REPLICA IDENTITY FULL;
    CREATE TABLE whole_keyed (LIKE keyed INCLUDING INDEXES);
    ALTER TABLE whole_keyed REPLICA IDENTITY FULL;
    CREATE TABLE mute (LIKE keyed INCLUDING INDEXES);
    ALTER TABLE mute REPLICA IDENTITY NOTHING;
    CREATE TABLE only_unique (LIKE keyed, UNIQUE (id, valid_at WITHOUT OVERLAPS));
    ALTER TABLE only_unique ALTER id DROP NOT NULL;
    INSERT INTO keyed SELECT int4range(i, i + 1), '[2000-01-01,2010-01-01)', 'a' FROM generate_series(1, 5) AS i;
    INSERT INTO by_index SELECT * FROM keyed;
    INSERT INTO whole SELECT * FROM keyed;
    INSERT INTO whole_keyed SELECT * FROM keyed;
    INSERT INTO mute SELECT * FROM keyed;
    INSERT INTO only_unique SELECT * FROM keyed;
    """,
    """
    UPDATE keyed SET a = 'b' WHERE id = '[2,3)';
    UPDATE keyed SET valid_at = '[2001-01-01,2010-01-01)' WHERE id = '[3,4)';
    INSERT INTO keyed VALUES ('[3,4)', '[2000-01-01,2001-01-01)', 'first');
    DELETE FROM keyed WHERE id = '[4,5)';
    UPDATE by_index SET a = 'b' WHERE id = '[2,3)';
    UPDATE by_index SET valid_at = '[2001-01-01,)' WHERE id = '[3,4)';
    DELETE FROM by_index WHERE id = '[4,5)';
    UPDATE whole SET a = 'b' WHERE id = '[2,3)';
    DELETE FROM whole WHERE id = '[4,5)';
    UPDATE whole_keyed SET a = 'b' WHERE id = '[2,3)';
    UPDATE whole_keyed SET id = '[8,9)' WHERE id = '[3,4)';
    DELETE FROM whole_keyed WHERE id = '[4,5)';
    UPDATE mute SET a = 'b';
    UPDATE only_unique SET a = 'b';
    DELETE FROM only_unique WHERE id = '[4,5)';
    """,
    tables=("keyed", "by_index", "whole", "whole_keyed"),
    absent=("mute", "only_unique"),
    since=18,
)

SEQUENCES = Scenario(
    "sequences",
    """
    CREATE SEQUENCE alone;
    CREATE TABLE counted (id serial PRIMARY KEY, n int DEFAULT nextval('alone'), i int GENERATED BY DEFAULT AS IDENTITY);
    INSERT INTO counted DEFAULT VALUES;
    """,
    """
    SELECT nextval('alone') FROM generate_series(1, 100);
    INSERT INTO counted DEFAULT VALUES;
    SELECT setval('alone', 5);
    INSERT INTO counted DEFAULT VALUES;
    ALTER SEQUENCE alone RESTART WITH 1000;
    INSERT INTO counted DEFAULT VALUES;
    BEGIN;
    INSERT INTO counted DEFAULT VALUES;
    ROLLBACK;
    INSERT INTO counted DEFAULT VALUES;
    """,
    tables=("counted",),
    absent=("alone", "counted_id_seq"),
)

BUGS = Scenario(
    "bugs",
    """
    CREATE FUNCTION double(x int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT x * 2';
    CREATE TABLE predicate (a int PRIMARY KEY, b int);
    CREATE INDEX ON predicate (b) WHERE a > bugs.double(1);
    CREATE UNLOGGED TABLE unlogged AS SELECT 1 AS a;
    CREATE TABLE identities (a int NOT NULL, b int NOT NULL);
    CREATE UNIQUE INDEX identities_a ON identities (a);
    CREATE UNIQUE INDEX identities_b ON identities (b);
    ALTER TABLE identities REPLICA IDENTITY USING INDEX identities_a;
    INSERT INTO identities VALUES (1, 1), (2, 2), (3, 3);
    CREATE TABLE dropped (a int, b_drop int, c int);
    ALTER TABLE dropped REPLICA IDENTITY FULL;
    INSERT INTO dropped VALUES (1, 1, 1), (2, 2, 2);
    CREATE TABLE missing (a int);
    INSERT INTO missing VALUES (1), (1), (2);
    ALTER TABLE missing ADD COLUMN b bool DEFAULT true;
    ALTER TABLE missing ADD COLUMN t text DEFAULT repeat('long', 1000);
    ALTER TABLE missing REPLICA IDENTITY FULL;
    INSERT INTO missing VALUES (1, false), (3, NULL);
    CREATE TABLE toasted (a int PRIMARY KEY, b text, c text);
    ALTER TABLE toasted ALTER b SET STORAGE EXTERNAL;
    INSERT INTO toasted SELECT i, repeat(i::text, 5000), 'c' FROM generate_series(1, 5) AS i;
    CREATE TABLE toasted_key (a text PRIMARY KEY, b text, c int);
    ALTER TABLE toasted_key ALTER a SET STORAGE EXTERNAL, ALTER b SET STORAGE EXTERNAL;
    INSERT INTO toasted_key SELECT repeat(i::text, 2500), repeat('b', 5000), i FROM generate_series(1, 5) AS i;
    """,
    """
    INSERT INTO predicate VALUES (1, 2), (3, 4);
    UPDATE predicate SET b = 5 WHERE a = 3;
    UPDATE unlogged SET a = 2;
    CREATE TEMPORARY TABLE passing AS SELECT 1 AS a;
    UPDATE passing SET a = 2;
    DROP TABLE passing;
    ALTER TABLE identities REPLICA IDENTITY USING INDEX identities_b;
    UPDATE identities SET a = -a WHERE a = 1;
    DELETE FROM identities WHERE a = 2;
    ALTER TABLE dropped DROP COLUMN b_drop;
    UPDATE dropped SET a = 100 WHERE a = 1;
    DELETE FROM dropped WHERE a = 2;
    UPDATE missing SET a = 10 WHERE a = 1;
    DELETE FROM missing WHERE a = 2;
    UPDATE toasted SET c = 'changed' WHERE a < 3;
    UPDATE toasted SET a = a + 10 WHERE a IN (2, 3);
    UPDATE toasted SET b = b || 'more' WHERE a = 4;
    BEGIN;
    UPDATE toasted SET c = 'once' WHERE a = 5;
    SAVEPOINT s;
    UPDATE toasted SET b = 'short' WHERE a = 5;
    ROLLBACK TO s;
    UPDATE toasted SET c = 'twice' WHERE a = 5;
    COMMIT;
    UPDATE toasted_key SET c = -c WHERE c < 3;
    UPDATE toasted_key SET a = a || 'x' WHERE c IN (-2, 4);
    DELETE FROM toasted_key WHERE c = 5;
    """,
    """
    UPDATE identities SET b = 33 WHERE b = 3;
    INSERT INTO toasted VALUES (2, repeat('again', 1000), NULL);
    UPDATE missing SET b = NULL WHERE a = 10;
    """,
    tables=("predicate", "toasted", "toasted_key", "missing"),
    loaded_again=("identities", "dropped"),
    absent=("unlogged",),
    since=12,
)

RENAMED_SCHEMA = Scenario(
    "renamed",
    "CREATE TABLE t (a int PRIMARY KEY);\nINSERT INTO t VALUES (0);\n",
    """
    BEGIN;
    INSERT INTO renamed.t VALUES (1);
    ALTER SCHEMA renamed RENAME TO renamed_before;
    CREATE SCHEMA renamed;
    CREATE TABLE renamed.t (a int PRIMARY KEY);
    INSERT INTO renamed.t VALUES (2);
    INSERT INTO renamed_before.t VALUES (3);
    COMMIT;
    """,
    "INSERT INTO renamed.t VALUES (4);\nINSERT INTO renamed_before.t VALUES (5);\n",
    loaded_again=("t", "renamed_before.t"),
)

OF_ALL_TABLES = (
    CHANGES,
    TYPES,
    CONSTRAINTS,
    NEW_TABLES,
    REWRITES,
    MATERIALIZED,
    TRUNCATES,
    GENERATED,
    VIRTUAL,
    COLLATIONS,
    PARTITIONS,
    STREAMED,
    MESSAGES,
    TWO_PHASE,
    WHOLE_ROWS,
    TEMPORAL,
    SEQUENCES,
    BUGS,
    RENAMED_SCHEMA,
)
"""The scenarios whose tables are in the publication that `replicate` makes."""

FILTERS = Scenario(
    "filters",
    """
    CREATE TABLE anded (a int PRIMARY KEY, b text);
    ALTER TABLE anded REPLICA IDENTITY FULL;
    CREATE TABLE ored (a int PRIMARY KEY, b int, c text);
    ALTER TABLE ored REPLICA IDENTITY FULL;
    CREATE TABLE by_key (a int PRIMARY KEY, b text);
    CREATE TABLE nulls (a int PRIMARY KEY, b boolean);
    ALTER TABLE nulls REPLICA IDENTITY FULL;
    CREATE TABLE root (a int PRIMARY KEY, b int) PARTITION BY RANGE (a);
    CREATE TABLE root_low PARTITION OF root FOR VALUES FROM (0) TO (10000);
    CREATE TABLE root_high PARTITION OF root FOR VALUES FROM (10000) TO (20000);
    CREATE TABLE toasted (a text NOT NULL, b text NOT NULL);
    ALTER TABLE toasted ALTER a SET STORAGE EXTERNAL;
    CREATE UNIQUE INDEX toasted_index ON toasted (a, b);
    ALTER TABLE toasted REPLICA IDENTITY USING INDEX toasted_index;
    INSERT INTO anded VALUES (1, 'x'), (1001, 'x'), (1002, 'filtered'), (1003, 'y'), (850, NULL);
    INSERT INTO ored SELECT i, i % 5, CASE WHEN i % 3 = 0 THEN 'c' END FROM generate_series(1, 30) AS i;
    INSERT INTO by_key SELECT i, 'b' || i FROM generate_series(1, 30) AS i;
    INSERT INTO nulls VALUES (1, true), (2, false), (3, NULL);
    INSERT INTO root VALUES (1, 1), (9999, 1), (10001, 1), (12000, 1);
    INSERT INTO toasted VALUES (repeat('1234567890', 200), '1234567890'), (repeat('1234567890', 200), '0');
    """,
    """
    INSERT INTO anded VALUES (800, 'low'), (1600, 'high'), (1601, 'filtered'), (1700, NULL);
    UPDATE anded SET a = a + 2000 WHERE a < 900;
    UPDATE anded SET b = 'filtered' WHERE a = 1003;
    UPDATE anded SET b = 'shown' WHERE a = 1002;
    UPDATE anded SET b = b || '!' WHERE a = 1001;
    DELETE FROM anded WHERE a = 1601;
    DELETE FROM anded WHERE a = 1600;
    UPDATE ored SET b = b + 1;
    UPDATE ored SET c = NULL WHERE a < 10;
    DELETE FROM ored WHERE a > 25;
    INSERT INTO ored VALUES (100, 4, NULL), (101, 0, 'c'), (102, NULL, NULL);
    UPDATE by_key SET a = a + 1000 WHERE a < 10;
    UPDATE by_key SET a = a - 1000 WHERE a > 1005;
    UPDATE by_key SET b = 'changed' WHERE a > 20;
    DELETE FROM by_key WHERE a = 15;
    UPDATE nulls SET b = NOT b;
    UPDATE nulls SET b = true WHERE b IS NULL;
    INSERT INTO root VALUES (2, 2), (9000, 2), (10002, 2), (13000, 2);
    UPDATE root SET a = a + 5000 WHERE a = 9000;
    UPDATE root SET a = a + 6000 WHERE a = 2;
    UPDATE root SET b = 9;
    UPDATE toasted SET b = '1' WHERE b = '0';
    UPDATE toasted SET b = '0' WHERE b = '1234567890';
    """,
    """
    UPDATE ored SET b = 4 - b;
    TRUNCATE nulls;
    INSERT INTO nulls VALUES (4, true), (5, NULL);
    DELETE FROM root WHERE a < 2;
    """,
    tables=("anded", "ored", "by_key", "nulls", "root", "toasted"),
    queries={
        "anded": "SELECT * FROM filters.anded WHERE a > 1000 AND b <> 'filtered'",
        "ored": "SELECT * FROM filters.ored WHERE b = 1 OR (b = 4 AND c IS NOT NULL) OR a > 100",
        "by_key": "SELECT * FROM filters.by_key WHERE a % 2 = 0 OR a > 1000",
        "nulls": "SELECT * FROM filters.nulls WHERE b",
        "root": "SELECT * FROM filters.root WHERE a < 6000 OR a > 12000",
        "toasted": "SELECT * FROM filters.toasted WHERE a = repeat('1234567890', 200) AND b < '10'",
    },
    published="""
    filters.anded WHERE (a > 1000 AND b <> 'filtered'),
    filters.ored WHERE (b = 1 OR (b = 4 AND c IS NOT NULL) OR a > 100),
    filters.by_key WHERE (a % 2 = 0 OR a > 1000),
    filters.nulls WHERE (b),
    filters.root WHERE (a < 6000 OR a > 12000),
    filters.toasted WHERE (a = repeat('1234567890', 200) AND b < '10')
    """,
    since=15,
)

COLUMN_LISTS = Scenario(
    "column_lists",
    """
    CREATE TABLE odd ("a'" int PRIMARY KEY, "B" varchar, "c'" int);
    CREATE TYPE mood AS ENUM ('blue', 'red');
    CREATE TABLE other_types (a int PRIMARY KEY, b mood, c int, d text);
    CREATE TABLE root (a int PRIMARY KEY, b text, c timestamptz) PARTITION BY LIST (a);
    CREATE TABLE root_1 PARTITION OF root FOR VALUES IN (1, 2, 3);
    CREATE TABLE root_2 PARTITION OF root FOR VALUES IN (7, 8, 9, 10) PARTITION BY LIST (a);
    CREATE TABLE root_2_1 (c timestamptz, a int NOT NULL, b text);
    ALTER TABLE root_2 ATTACH PARTITION root_2_1 FOR VALUES IN (7, 8, 9, 10);
    CREATE TABLE last_first (c text, b int, a int PRIMARY KEY);
    CREATE TABLE filtered (a int PRIMARY KEY, b int, c int);
    CREATE TABLE rekeyed (a int PRIMARY KEY, b int NOT NULL, c int, d int);
    CREATE TABLE secret (id int PRIMARY KEY, shown text, secret text);
    INSERT INTO odd VALUES (1, 'b', 3), (4, 'b', 6);
    INSERT INTO other_types VALUES (1, 'red', 3, 'oh my'), (2, 'blue', 4, 'hello');
    INSERT INTO root VALUES (1, 'abc', now()), (2, 'bcd', now()), (7, 'abc', now()), (8, 'bcd', now());
    INSERT INTO last_first VALUES ('c', 2, 1), ('d', 3, 2);
    INSERT INTO filtered SELECT i, i % 3, i FROM generate_series(1, 12) AS i;
    INSERT INTO rekeyed VALUES (1, 22, 333, 4444);
    INSERT INTO secret SELECT i, repeat('shown', 1000), repeat('secret', 1000) FROM generate_series(1, 5) AS i;
    """,
    """
    INSERT INTO odd VALUES (2, 'b', 4), (5, NULL, NULL);
    UPDATE odd SET "B" = "B" || ' updated' WHERE "a'" = 4;
    UPDATE odd SET "c'" = 2 * "c'" WHERE "a'" = 1;
    INSERT INTO other_types VALUES (3, 'red', 5, 'foo');
    UPDATE other_types SET b = 'blue', c = c * 2, d = d || ' updated' WHERE a = 1;
    UPDATE other_types SET c = c * 2;
    INSERT INTO root VALUES (3, 'xxx', now()), (9, 'zzz', now());
    UPDATE root SET c = c + interval '1 day';
    UPDATE root SET a = 10, b = 'moved' WHERE a = 1;
    UPDATE last_first SET c = c || '!', a = a + 10;
    INSERT INTO last_first VALUES (NULL, NULL, 3);
    UPDATE filtered SET b = b + 1;
    UPDATE filtered SET c = -c;
    DELETE FROM filtered WHERE a > 10;
    INSERT INTO rekeyed VALUES (2, 33, 444, 5555);
    UPDATE rekeyed SET b = b * 2, c = c * 3, d = d * 4;
    UPDATE secret SET secret = secret || 'more' WHERE id < 4;
    UPDATE secret SET id = id + 10 WHERE id > 3;
    """,
    """
    ALTER TABLE rekeyed DROP CONSTRAINT rekeyed_pkey, ADD PRIMARY KEY (b);
    INSERT INTO rekeyed VALUES (3, 55, 666, 8888);
    UPDATE rekeyed SET b = b * 2, c = c * 3;
    ALTER TABLE secret ADD more int;
    UPDATE secret SET more = 1, shown = 'short' WHERE id = 1;
    """,
    tables=("odd", "other_types", "root", "last_first", "filtered"),
    loaded_again=("rekeyed", "secret"),
    queries={
        "odd": """SELECT "a'", "c'" FROM column_lists.odd""",
        "other_types": "SELECT a, b, d FROM column_lists.other_types",
        "root": "SELECT a, b FROM column_lists.root",
        "last_first": "SELECT b, a FROM column_lists.last_first",
        "filtered": "SELECT a, b FROM column_lists.filtered WHERE a % 2 = 0",
        "rekeyed": "SELECT a, b FROM column_lists.rekeyed",
        "secret": "SELECT id, shown FROM column_lists.secret",
    },
    published="""
    column_lists.odd ("a'", "c'"),
    column_lists.other_types (a, b, d),
    column_lists.root (b, a),
    column_lists.last_first (a, b),
    column_lists.filtered (a, b) WHERE (a % 2 = 0),
    column_lists.rekeyed (a, b),
    column_lists.secret (id, shown)
    """,
    since=15,
)

IN_AND_OUT = Scenario(
    "in_and_out",
    """
    CREATE TABLE leaving (a int PRIMARY KEY, b text);
    INSERT INTO leaving SELECT i, 'b' FROM generate_series(1, 10) AS i;
    """,
    """
    CREATE TABLE joining (a int PRIMARY KEY, b text);
    INSERT INTO joining SELECT i, 'b' FROM generate_series(1, 10) AS i;
    UPDATE joining SET b = 'not sent';
    ALTER PUBLICATION users ADD TABLE joining;
    UPDATE joining SET b = 'sent' WHERE a > 5;
    """,
    """
    ALTER PUBLICATION users DROP TABLE leaving;
    UPDATE leaving SET b = 'not sent' WHERE a < 3;
    DELETE FROM leaving WHERE a = 4;
    ALTER PUBLICATION users ADD TABLE leaving;
    UPDATE leaving SET b = 'sent' WHERE a > 7;
    """,
    loaded_again=("leaving", "joining"),
    published="in_and_out.leaving",
    since=15,
)

OF_A_PUBLICATION = (FILTERS, COLUMN_LISTS, IN_AND_OUT)
"""The scenarios whose tables are in the publication `users`, which a user made."""

IN_SCHEMA = Scenario(
    "in_schema",
    """
    CREATE TABLE one (a int PRIMARY KEY);
    CREATE TABLE two (a int PRIMARY KEY);
    CREATE TABLE away (a int PRIMARY KEY);
    CREATE TABLE root (a int PRIMARY KEY) PARTITION BY RANGE (a);
    CREATE TABLE public.elsewhere PARTITION OF root FOR VALUES FROM (0) TO (100);
    CREATE TABLE public.coming (a int PRIMARY KEY);
    INSERT INTO one SELECT generate_series(1, 10);
    INSERT INTO two SELECT generate_series(1, 10);
    INSERT INTO away SELECT generate_series(1, 10);
    INSERT INTO root SELECT generate_series(1, 10);
    INSERT INTO public.coming SELECT generate_series(1, 10);
    """,
    """
    INSERT INTO one VALUES (11);
    INSERT INTO root VALUES (11);
    INSERT INTO public.coming VALUES (11);
    CREATE TABLE three AS SELECT generate_series(1, 5) AS a;
    ALTER TABLE three ADD PRIMARY KEY (a);
    INSERT INTO three VALUES (11);
    ALTER TABLE public.coming SET SCHEMA in_schema;
    INSERT INTO coming VALUES (12);
    ALTER TABLE away SET SCHEMA public;
    INSERT INTO public.away VALUES (11);
    ALTER TABLE public.away SET SCHEMA in_schema;
    INSERT INTO away VALUES (12);
    """,
    """
    INSERT INTO two VALUES (13);
    ALTER TABLE two SET SCHEMA public;
    INSERT INTO public.two VALUES (14);
    DELETE FROM root WHERE a < 3;
    """,
    tables=("one", "root"),
    loaded_again=("three", "coming", "away"),
    since=15,
)
"""The scenario of a publication of all tables of a schema."""
