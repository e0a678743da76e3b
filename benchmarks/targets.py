"""The targets: the goal of each piece of work, in the order of the tables."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    key: str
    work: str
    reach: str


TARGETS = [
    Target(
        "intervals-one",
        "1-d, 100k queries, 1M rows, 1 match a row",
        "4 x the best of DuckDB, Polars, ncls; 2 x superintervals",
    ),
    Target(
        "intervals-ten",
        "1-d, 100k and 1M queries, 1M rows, 10 matches a row; widths uniform and heavy-tailed; list form",
        "8 x the best of DuckDB, Polars, ncls; 2 x superintervals",
    ),
    Target(
        "rectangles",
        "2-d, 32k and 256k rectangles on the VCR paper's grid, uniform and 90-10",
        "20 x shapely's STRtree, with at most 300 bytes per query",
    ),
    Target("small-boxes", "2-d, 1M boxes, 1M rows, 5 matches a row", "12 x STRtree"),
    Target("conjunctions", "4 and 8 attributes, 10k and 100k random conjunctions as in Lim et al.", "60 x DuckDB"),
    Target(
        "arrays",
        "1M queries `array_contains(tags, ?) AND price < ?`, 200k rows with five tags each",
        "10 x the best of DuckDB",
    ),
    Target(
        "now",
        "1M queries `ts > now() - INTERVAL n SECONDS`, 1M rows, also with a price; `border` with such bounds",
        "within 1.5 x of fixed bounds",
    ),
    Target(
        "spark-one",
        "`vs.match`, 4M rows of three columns, 100k queries, at most 1 match a row, list output",
        "within 1.5 x of identity `mapInArrow` in the same run",
    ),
    Target("spark-ten", "the same with 10 matches a row", "within 2.5 x"),
    Target("spark-join", "`vs.match` against Spark's own broadcast join, 100k queries x 100k rows, warm", "100 x"),
    Target(
        "load-boxes",
        "`add_boxes` of 1M 1-d queries until the first match can run",
        "within 5 x of one `np.argsort` of their 2M ends",
    ),
    Target("load-texts", "`add_many` of 1M texts of five shapes", "10 x sqlglot's `parse_one` in a loop"),
    Target(
        "threads",
        "two threads compared with one: match, `border` and the joins, by size of batch",
        "1.8 x for batches of 100k rows and more, and not slower for smaller ones",
    ),
    Target(
        "churn",
        "1,000 additions and 1,000 removals on a set of 1M, then a match of 100k rows",
        "within 1.3 x of the same match without them",
    ),
    Target(
        "border-cooldown", "1M queries with 1M different cooldowns, border events", "1.5 x the time of none at most"
    ),
    Target("patterns", "100k queries `s LIKE '%...%'` over 20k texts of 80 letters", "50 x evaluating them one by one"),
    Target(
        "circles",
        "1M circles of 50 m to 5 km on the spheroid, 1M positions, in towns and in the country",
        "5 x shapely's STRtree with a geodesic check by pyproj",
    ),
    Target("match-one", "`match_one` at 100k queries", "median under 50 microseconds"),
    Target("memory", "memory of a 1-d query", "100 bytes or less"),
    Target(
        "border-1d",
        "`border` over 100k ranges, 2,000 x 1,000 readings as in Lee et al., steps and widths of 0.01% to 0.1%",
        "5 x the best of NumPy, Polars, ncls; 5 x DiffRMQ over our fastest index for steps of a tenth of the width, "
        "and not slower for steps below the width",
    ),
    Target(
        "border-2d",
        "`border` over 1M boxes of two fields, 100k keys, small and large steps",
        "never slower than DiffRMQ over our fastest index",
    ),
    Target(
        "border-steps",
        "`border` of one row a step at 100k queries, known and new keys; also of 10, 100 and 1,000 rows a step",
        "one row: median 60 microseconds, 99th percentile 150; more rows: median 150, 300 and 1,000",
    ),
    Target(
        "spark-border",
        "`vs.border`, 1M rows a micro-batch, 100k keys, 100k queries, few events, warm batches, noop sink",
        "within 2.5 x of the identity streaming pass",
    ),
    Target(
        "spark-state",
        "`vs.border`, a micro-batch that touches 10k keys, with 1M keys in the state",
        "within 2 x of the same with 10k keys in the state",
    ),
    Target(
        "spark-slots",
        "stateful transforms on one executor with four slots, warm batches that change a twentieth of the state",
        "at most 5% of shard steps load the whole state; within 1.3 x of four executors with one slot",
    ),
    Target(
        "spark-slots-standalone",
        "the same on a standalone cluster, two executors with two slots each",
        "at most 5% of shard steps load the whole state; within 1.3 x of executors with one slot",
    ),
    Target(
        "band-pairs",
        "band joins: the pairs of a new value with 100k values, for 100k bands in 100 clusters, a tenth anywhere",
        "25 x the best of NumPy with sorted needles, DuckDB, ncls",
    ),
    Target(
        "band-queries",
        "band joins: the queries that a new value affects, the same values and bands",
        "25 x the best of NumPy with sorted needles, DuckDB, ncls",
    ),
    Target(
        "band-updates",
        "band joins: a value or a band inserted or removed, 100k values on both sides, 100k bands",
        "at most 10 x the lookup of a value",
    ),
    Target(
        "spark-window-join",
        "`vs.window_join`, 500k rows a side and micro-batch, few results, warm batches, noop sink",
        "within 4 x of the identity streaming pass over both",
    ),
    Target(
        "window-join",
        "window joins: 1k and 10k joins of ranges over windows of 10k rows, by comparison and by band, 2k rows at once",
        "8 x the best formulation in DuckDB; 10 x IBS-JS; at most twice the time for bands of twice the width",
    ),
    Target(
        "moving",
        "moving joins: 10k x 10k objects of side 5 in 1000 x 1000, and 100k x 100k, that update every 60, 1% at a time",
        "in units of U, a compiled pass over all pairs of 10k x 10k: 0.03 initially; a timestamp with its pairs 0.003 "
        "uniform, 0.006 Gaussian and battlefield, 0.2 with 100k; 48 bytes per pair",
    ),
    Target(
        "registry-add",
        "`Registry.add_many` of 100k texts, on SQLite and on PostgreSQL",
        "at least 10,000 queries per second",
    ),
    Target(
        "registry-follow",
        "`vs.match` following 1M queries of a registry, 1M rows a micro-batch",
        "at most 1.05 x a set that is not followed; with 1,000 changes since the last batch at most 1.15 x",
    ),
    Target(
        "registry-workers",
        "four workers of one host that follow 1M queries, for matching and for borders: their share of the base in "
        "memory, together",
        "the base's file once; at most 2.5 x the base in their total memory",
    ),
    Target(
        "long-query",
        "`add` of one query of 10,000 terms joined by AND, and its first match",
        "at most 2 seconds",
    ),
    Target(
        "validation",
        "the first load of a saved set of 1M queries on a host, which validates it",
        "within 1.1 x of a load without validation",
    ),
    Target(
        "cold-start",
        "from the start of a process with a warm Numba cache to its first answer",
        "under 3 s; `import vedette` under half a second, heavy imports lazy, no pyspark",
    ),
    Target(
        "first-answers",
        "the first answer of each operator on a host that has never run it: after `vedette warm`, and on a Spark "
        "executor to which the driver sends its kernels",
        "under 3 s, and no kernel is compiled",
    ),
    Target(
        "serve-rows",
        "`vedette serve`: `POST /rows` of one row each, 100 connections, 100k zones, one process on one core",
        "4,000 requests a second; 99th percentile below 20 ms at half of that, open loop",
    ),
    Target(
        "serve-batches",
        "`vedette serve`: batches of 1,000 rows with 0.1 events a row, 100k zones",
        "250k rows a second as JSON lines, 1M as Arrow",
    ),
    Target(
        "serve-tile38",
        "`vedette serve` against Tile38: 100k zones, enter and exit, the same events",
        "10 x its pipelined updates a second in batches over HTTP; by WebSocket, pipelined, not slower",
    ),
    Target(
        "serve-events",
        "`vedette serve`: from the acknowledged row to its event at a client, 1,000 rows a second, durable state",
        "99th percentile below 50 ms",
    ),
    Target(
        "serve-restart",
        "`vedette serve`: restart after `kill -9` with 1M keys and 1M queries",
        "first answer within 10 s",
    ),
    Target(
        "serve-list",
        "`vedette serve`: the first page of 1M queries in the console",
        "within 300 ms",
    ),
    Target(
        "planner",
        "the planner's choice against every index forced: time over the best time, by workload",
        "median at most 1.1, worst at most 2",
    ),
]

# The figures of the papers, by paper. A bound of a figure is the paper's claim, or most of it.
PAPERS = [
    Target(
        "vci-fig6",
        "Wu, Chen and Yu, figure 6: search time of interval indexes against the number of queries",
        "LCI with the L that is chosen within 1.3 x of the best, by time times memory",
    ),
    Target("vci-fig7", "Wu, Chen and Yu, figure 7: memory of interval indexes against the number of queries", ""),
    Target(
        "vcr-fig12",
        "Wu, Chen and Yu, figure 12: time and memory of VCR against the greatest side L",
        "the L that is chosen within 1.3 x of the best, by time times memory",
    ),
    Target(
        "vcr-fig13",
        "Wu, Chen and Yu, figure 13: VCR and R-trees against the number of queries, as they overlap",
        "VCR 3 x an R-tree on highly overlapping rectangles",
    ),
    Target(
        "sjcq-table3",
        "Lim et al., table 3: the best size of data clusters, N_dc, by batch and attributes",
        "the N_dc that is chosen within 1.2 x of the best",
    ),
    Target(
        "sjcq-fig15",
        "Lim et al., figure 15: SJ-Batch, SJ-Immediate and IBS against the number of queries",
        "SJ-Batch 15 x IBS at 10k queries, and more at 100k",
    ),
    Target("sjcq-fig16", "Lim et al., figure 16: the same against the share of attributes with predicates", ""),
    Target("sjcq-fig17", "Lim et al., figure 17: the same against the share of rows in a tenth of the domain", ""),
    Target("sjcq-fig18", "Lim et al., figure 18: SJ-Join and IBS-JS against the number of queries, by windows", ""),
    Target(
        "bmq-fig6",
        "Lee et al., figure 6: BMQ and DiffRMQ against the number of queries",
        "BMQ not slower than DiffRMQ if FL is below W",
    ),
    Target(
        "bmq-fig7",
        "Lee et al., figure 7: BMQ and DiffRMQ against the width of queries",
        "BMQ not slower than DiffRMQ if FL is below W",
    ),
    Target(
        "bmq-fig8",
        "Lee et al., figure 8: BMQ and DiffRMQ against the fluctuation level",
        "BMQ not slower than DiffRMQ if FL is below W",
    ),
    Target("bmq-fig9", "Lee et al., figure 9: memory against the number and the width of queries", ""),
    Target(
        "bmq-axes",
        "Lee et al., section 4: BMQ on one to three axes and DiffRMQ against the fluctuation level",
        "",
    ),
    Target(
        "band-tau",
        "Agarwal et al.: size and time of all structures against the number of stabbing points",
        "the stabbing set at least 10 x as large with hundreds of times the points, and at most 2 x as slow; at most "
        "2 x as slow with eight times the bands around the same number of points",
    ),
    Target(
        "band-bands",
        "Agarwal et al.: size and time of all structures against the number of bands",
        "the stabbing set at most 2 x as large, and as slow, with eight times the bands",
    ),
    Target("band-values", "Agarwal et al.: size and time of all structures against the number of values", ""),
    Target("band-output", "Agarwal et al.: size and time of all structures against the number of pairs found", ""),
    Target("mtb-fig20", "Zhang et al., figure 20: maintenance by MTB-Join against the number of time buckets", ""),
    Target("mtb-fig21", "Zhang et al., figure 21: the initial join with and without a time constraint", ""),
    Target(
        "mtb-fig22",
        "Zhang et al., figure 22: the initial join with plane sweep, dimension selection and intersection check",
        "",
    ),
    Target("mtb-fig23", "Zhang et al., figure 23: the improved access order, and group processing of updates", ""),
    Target("mtb-fig24", "Zhang et al., figure 24: the initial join against the number of objects", ""),
    Target("mtb-fig25", "Zhang et al., figure 25: the initial join of each distribution", ""),
    Target("mtb-fig26", "Zhang et al., figure 26: the initial join against the highest speed of objects", ""),
    Target("mtb-fig27", "Zhang et al., figure 27: the initial join against the size of objects", ""),
    Target("mtb-fig28", "Zhang et al., figure 28: the initial join of vehicles on streets", ""),
    Target("mtb-fig29", "Zhang et al., figure 29: maintenance against the number of objects", ""),
    Target("mtb-fig30", "Zhang et al., figure 30: maintenance of each distribution, and of vehicles on streets", ""),
    Target("mtb-fig31", "Zhang et al., figure 31: maintenance against the highest speed of objects", ""),
    Target("mtb-fig32", "Zhang et al., figure 32: maintenance against the size of objects", ""),
    Target("mtb-fig33", "Zhang et al., figure 33: maintenance against the probability of an update", ""),
    Target("mtb-fig35", "Zhang et al., figure 35: node accesses per update, expected and actual", ""),
    Target("mtb-fig36", "Zhang et al., figure 36: the cost of update intervals, uniform sets", ""),
    Target("mtb-fig37", "Zhang et al., figure 37: the cost of update intervals, battlefield", ""),
    Target("mtb-fig38", "Zhang et al., figure 38: the cost of update intervals, Gaussian sets", ""),
    Target("mtb-fig39", "Zhang et al., figure 39: the cost of update intervals, trucks", ""),
    Target("mtb-fig40", "Zhang et al., figure 40: the cost of update intervals, buses", ""),
    Target("mtb-fig41", "Zhang et al., figure 41: the cost of observing candidate intervals", ""),
]

# Work without a target, shown after the targets.
EXTRAS = [
    Target("registry-large", "a registry of five million queries: add, list, compact, follow, here and in Spark", ""),
    Target("intervals-hundred", "1-d, 100k queries, 200k rows, 100 matches a row; list form", ""),
    Target("mixed-conjunctions", "the conjunctions of Lim et al. over a random number of attributes each", ""),
    Target("moving-growth", "moving joins: a timestamp from 10k to 400k objects per set, at the same density", ""),
    Target("geofences", "`vs.border`, 23,000 circles of 5 km, 100k vehicles, enter and exit", ""),
    Target("backtest", "`vs.backtest`, 100M rows of 30 days, 10k queries before and after a change, 20k keys", ""),
    Target(
        "spark-sql",
        "ways to match in Spark: `observe=` and the functions of SQL, 4M rows of three columns, 100k queries, at most "
        "1 match a row",
        "",
    ),
    Target("constructs", "a condition of each kind, 500 queries of a shape over 500 rows", ""),
]

EVERY_TARGET = [*TARGETS, *PAPERS, *EXTRAS]
