"""What a stranger may try: statements with the codes that may answer them. `{file}` is a file that only the owner may read or write.

A text is `refused` before it runs, or `invalid`; what is too much ends at the memory, output or time limit. `answered` means that it is
allowed and harmless: its answer says nothing of the machine. None of them may write, or reach anything outside the store's own tables.
"""

from __future__ import annotations

REFUSED = {"refused", "invalid"}
TOO_MUCH = {"memory_limit", "too_large", "time_limit", "invalid"}
HARMLESS = {"answered", "invalid"}

DEEP = 5_000

READS_FILES = (
    "from read_text('/etc/passwd')",
    "from read_blob('/proc/self/environ')",
    "from read_csv_auto('/etc/passwd')",
    "from read_json('{file}')",
    "from read_parquet('{file}')",
    "from parquet_metadata('{file}')",
    "from parquet_schema('{file}')",
    "from sniff_csv('/etc/passwd')",
    "from '/etc/passwd'",
    "from 'file:///etc/passwd'",
    "from glob('/etc/*')",
    "from query('from read_text(''/etc/passwd'')')",
    "from query_table('/etc/passwd')",
    "select (select content from read_text('/etc/passwd'))",
    "select 1 where exists (from read_text('/etc/passwd'))",
    "with a as materialized (from read_text('/etc/passwd')) from a",
    "describe from read_csv('/etc/passwd')",
    "summarize from read_csv('/etc/passwd')",
    "explain analyze select * from read_csv('/etc/passwd')",
)
NETWORK = (
    "from read_csv('http://127.0.0.1:9/a.csv')",
    "from read_parquet('s3://bucket/a.parquet')",
    "from 'https://127.0.0.1/a.parquet'",
    "install httpfs",
    "load httpfs",
    "force install spatial",
    "from sqlite_scan('/tmp/a.db', 't')",
    "from postgres_scan('host=127.0.0.1', 'public', 't')",
    "create secret (type s3, key_id 'a', secret 'b')",
)
WRITES = (
    "copy (select 1) to '{file}'",
    "with x as (copy (select 1 as a) to '{file}') from x",
    "from query('with x as (copy (select 1 as a) to ''{file}'') from x')",
    "export database '{file}'",
    "attach '{file}' as other",
    "create table t as select 1",
    "create or replace temp view requests as select 1",
    "insert into flips values (1)",
    "delete from requests",
    "update requests set model = 'x'",
    "drop view requests",
    "alter view requests rename to r",
    "vacuum",
    "checkpoint",
    "begin",
    "commit",
)
SETTINGS = (
    "set memory_limit = '100GB'",
    "set enable_external_access = true",
    "set threads = 64",
    "reset lock_configuration",
    "pragma enable_profiling",
    "pragma memory_limit = '1TB'",
    "call enable_logging()",
    "set variable a = 1",
    "use memory",
    "prepare q as select 1",
    "execute q",
    "deallocate q",
)
DISGUISED = (
    "select 1; copy (select 1) to '{file}'",
    "select 1;; attach '{file}'",
    "select 1 /* ; */ ; /* */ set threads = 64",
    "/* select 1 */ copy (select 1) to '{file}'",
    "-- select 1\ncopy (select 1) to '{file}'",
    "select 1 --\n; drop view requests",
    "/**/copy/**/(select 1)/**/to/**/'{file}'",
    "cOpY (sElEcT 1) tO '{file}'",
    "explain copy (select 1) to '{file}'",
    "explain analyze insert into flips values (1)",
    "\N{ZERO WIDTH SPACE}attach '{file}'",
    "\N{FULLWIDTH LATIN SMALL LETTER C}opy (select 1) to '{file}'",
    "\N{RIGHT-TO-LEFT OVERRIDE}tceles",
    "select 1\N{FULLWIDTH SEMICOLON} copy (select 1) to '{file}'",
    "select\x00 1; attach '{file}'",
    "from json_execute_serialized_sql(json_serialize_sql('from read_text(''/etc/passwd'')'))",
)
MEMORY = (
    "select length(repeat('x', 4000000000))",
    "select len(range(10000000000))",
    "select len(generate_series(1, 10000000000))",
    "select length(format('{{:2000000000}}', 1))",
    "select length(printf('%2000000000d', 1))",
    "select len(list_transform(range(200000000), lambda x: x || repeat('y', 100)))",
    "select string_agg(repeat('x', 1000000)) from range(10000)",
    "select list(repeat('x', 1000000)) from range(10000)",
    "select len(string_split(repeat('a,', 300000000), ','))",
    "select length(repeat('[', 500000000)::json::varchar)",
    "select array_agg(r) over () from range(1000000) t(r)",
)
NESTED = (
    "select " + "(" * DEEP + "1" + ")" * DEEP,
    "select " + "-" + "- " * DEEP + "1",
    "select " + "[" * DEEP + "]" * DEEP,
    "select " + "abs(" * DEEP + "1" + ")" * DEEP,
    "from " + "(from " * 2_000 + "range(1)" + ")" * 2_000,
    " union all ".join(["select 1"] * 5_000),
    "select " + " + ".join(["1"] * 20_000),
    "select case " + "when 1 = 2 then 1 " * 5_000 + "end",
)
ENDLESS = (
    "select count(*) from range(10000000) a, range(10000000) b, range(10000000) c",
    "with recursive r as (select 1 as a union all select a + 1 from r) select max(a) from r",
    "select levenshtein(repeat('x', 300000), repeat('y', 300000))",
    "select count(*) from range(100000000) t(a) where regexp_matches(repeat(a::varchar, 1000), '(x+x+)+y')",
    "select sum(len(list_sort(list_transform(range(100000), lambda x: hash(x + r))))) from range(100000) t(r)",
    "select max(md5(sha256(a::varchar))) from range(100000000000) t(a)",
)
TELLS = (
    "select * from duckdb_secrets()",
    "select getenv('PATH')",
    "select current_setting('enable_external_access')",
    "from duckdb_temporary_files()",
    "select * from pg_catalog.pg_user",
    "from duckdb_databases()",
    "from duckdb_logs",
    "select getvariable('a')",
    "select write_log('x')",
    "select nextval('s')",
    "select '=1+1' as a, '<script>alert(1)</script>' as b, chr(27) || '[2J' as c",
    "select 'a' as \"<img src=x onerror=alert(1)>\"",
)
