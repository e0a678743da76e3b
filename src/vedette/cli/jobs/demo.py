"""`vedette demo`: a generated market, a hundred thousand alerts, a Spark stream; answers are checked and compared."""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from vedette.cli.jobs.progress import show_progress, timed
from vedette.demo.market import Market
from vedette.demo.report import Report, StreamTime, in_words
from vedette.errors import FileError
from vedette.extras import check_extra
from vedette.queries.query_set import QuerySet

if TYPE_CHECKING:
    from vedette.demo.answers import Answers
    from vedette.demo.stream import Progress, TickStream

_FILES, _FILES_PER_BATCH = 48, 4  # files of ticks, and how many are a micro-batch
_CHECKED = 16  # alerts whose hits and events are compared with Spark's filter
_TOP = 8
_JOIN_SECONDS = 5.0


@dataclass
class Demo:
    """One run of the demo."""

    n_rows: int
    n_alerts: int
    seed: int
    output_dir: Path
    quiet: bool = False

    def run(self) -> bool:
        """Run everything and write the report. Returns whether the answers agree with Spark's and DuckDB's."""
        check_extra("spark", "vedette demo")
        check_extra("plots", "the report of vedette demo")
        from vedette.spark.java import check_java

        self._console = Console(highlight=False)
        try:
            self.output_dir.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=self.output_dir).close()
        except OSError as error:
            raise FileError(
                f"cannot write {self.output_dir}: {error.strerror}; choose another with --output-dir"
            ) from None
        check_java()
        work_dir = Path(tempfile.mkdtemp(prefix="vedette-demo-"))
        try:
            return self._run(work_dir)
        finally:
            shutil.rmtree(work_dir, ignore_errors=True)

    def _run(self, work_dir: Path) -> bool:
        from vedette import spark as vs
        from vedette.demo.answers import Answers
        from vedette.demo.stream import TickStream
        from vedette.spark.log_filter import quiet_end

        self._console.print(f"\n[bold]Vedette[/]: {self.n_alerts:,} queries over {self.n_rows:,} ticks of a market\n")
        market = Market.open(self.seed)
        with self._step("generating the market and its alerts"):
            table = market.alerts(self.n_alerts)
            ticks_dir = self._write_ticks(market, work_dir)
        alerts = QuerySet(market.schema)
        with self._step(f"loading {self.n_alerts:,} alerts from SQL texts"):
            alerts.add_many(table["id"], table["where"])
        self._show_examples(table)
        with self._step("starting Spark on this machine's cores"):
            spark = vs.session("vedette demo")
            quiet_end()
            stream = TickStream(spark, ticks_dir, work_dir)
            stream.warm_up(alerts)
        try:
            report = Report(self.n_rows, self.n_alerts, self.seed)
            report.match = self._stream("matched", "hits", stream.match, alerts)
            if not report.match.n_answers:
                self._print("no tick hit an alert, so there is nothing to show; use more --rows or more --alerts")
                return True
            report.border = self._stream("watched", "enter and exit events", stream.watch, alerts)
            texts = dict(zip(table["id"].to_pylist(), table["where"].to_pylist(), strict=True))
            answers = Answers(stream.ticks, stream.hits, stream.events)
            self._show_answers(answers, texts, report)
            is_right = self._check(answers, texts, report)
            is_right = self._compare(stream, table, report) and is_right
            with self._step("drawing the report"):
                path = report.write(self.output_dir)
        finally:
            spark.stop()
        self._console.print(f"\nReport: [bold]{path}[/] (its picture: {path.with_suffix('.png').name})\n")
        return is_right

    def _write_ticks(self, market: Market, work_dir: Path) -> Path:
        """Write the day's ticks as files, earliest first."""
        ticks_dir = work_dir / "ticks"
        ticks_dir.mkdir()
        for n, batch in enumerate(market.ticks(self.n_rows, _FILES)):
            pq.write_table(pa.Table.from_batches([batch]), ticks_dir / f"{n:03d}.parquet")
        return ticks_dir

    def _show_examples(self, table: pa.Table) -> None:
        shapes = table["shape"].to_pylist()
        for shape in sorted(set(shapes)):
            place = shapes.index(shape)
            self._console.print(f"      [dim]{table['id'][place]}  {table['where'][place]}[/]", soft_wrap=True)

    def _stream(
        self, done: str, answers: str, run: Callable[[QuerySet, int], Iterator[Progress]], alerts: QuerySet
    ) -> StreamTime:
        """Run a stream to its end. `done` and `answers` are the words for what it does and finds."""
        with timed() as seconds, show_progress("  streaming", self.n_rows, self.quiet) as advance:
            for progress in run(alerts, _FILES_PER_BATCH):
                advance(progress.n_rows, progress.n_rows)
        found = StreamTime(self.n_rows, seconds(), progress.steady_rate or self.n_rows / seconds(), progress.n_answers)
        self._print(
            f"{done} {progress.n_rows:,} ticks in {progress.n_batches} micro-batches: [bold]{seconds():.1f} s[/], "
            f"{found.cold_rate:,.0f} ticks a second from a cold start, [bold]{found.steady_rate:,.0f}[/] in steady "
            f"state; [bold]{progress.n_answers:,}[/] {answers}"
        )
        return found

    def _show_answers(self, answers: Answers, texts: dict[str, str], report: Report) -> None:
        with self._step("reading the answers"):
            hits, enters = answers.count_hits(), answers.count_events()
            report.symbols = answers.busiest_symbols(hits, _TOP)
            report.alerts = [
                (alert, texts[alert], *rest) for alert, *rest in answers.most_triggered(hits, enters, _TOP)
            ]
            report.n_triggered = answers.count_triggered(hits)
            hits.unpersist()
            enters.unpersist()
            report.by_minutes = answers.by_minutes(10)
            report.choose_shown()
            report.prices = answers.prices(report.shown_symbol, 4000)
            report.hits = answers.hits_of(report.shown_alert, 2000)
            for event in report.crossings:
                report.crossings[event] = answers.crossings_of(report.shown_alert, report.shown_symbol, event)
        symbols = Table(
            "symbol", "hits", "alerts hit", "lowest", "highest", title="Busiest symbols", title_justify="left"
        )
        for symbol, n_hits, n_alerts, low, high in report.symbols:
            symbols.add_row(symbol, f"{n_hits:,}", f"{n_alerts:,}", f"{low:.2f}", f"{high:.2f}")
        alerts = Table(
            "alert", "hits", "enters", "first", "last", "text", title="Most triggered alerts", title_justify="left"
        )
        for alert, text, n_hits, n_enters, first, last in report.alerts:
            alerts.add_row(alert, f"{n_hits:,}", f"{n_enters:,}", f"{first:%H:%M:%S}", f"{last:%H:%M:%S}", text)
        for table in (symbols, alerts):
            for column in table.columns[1:]:
                column.justify = "left" if column.header == "text" else "right"
            self._console.print()
            self._console.print(table)
        self._console.print(f"\n  {report.n_triggered:,} of the {self.n_alerts:,} alerts were hit at least once.\n")

    def _check(self, answers: Answers, texts: dict[str, str], report: Report) -> bool:
        """Compare a sample, half of it alerts that were hit, with Spark's own filter."""
        hit = [alert for alert, *_ in report.alerts]
        others = sorted(texts.keys() - set(hit))
        sample = hit + random.Random(self.seed).sample(others, min(_CHECKED - len(hit), len(others)))
        with show_progress("  checking", len(sample), self.quiet) as advance:
            wrong = answers.check({alert: texts[alert] for alert in sample}, lambda n: advance(n, 0))
        for each in wrong:
            self._console.print(
                f"  [red]{each.alert}: {each.n_hits:,} hits and {each.n_events:,} events, but Spark's filter gives "
                f"{each.n_hits_spark:,} and {each.n_events_spark:,}[/]  {texts[each.alert]}"
            )
        report.n_checked, report.n_wrong = len(sample), len(wrong)
        if not wrong:
            self._print(
                f"[green]checked[/] {len(sample)} alerts against Spark's own filter(text): the same hits and the same "
                "number of events for each"
            )
        return not wrong

    def _compare(self, stream: TickStream, table: pa.Table, report: Report) -> bool:
        """Time the joins of Spark and DuckDB, and compare their number of pairs with ours."""
        from vedette.demo.joins import time_duckdb_join, time_spark_join

        with self._step("timing Spark's own join on some of the ticks"):
            timed_joins = {"Spark's own join": time_spark_join(stream.ticks, table, self.n_rows, _JOIN_SECONDS)}
        with self._step("timing DuckDB on some of the ticks"):
            duckdb = time_duckdb_join(stream.ticks_dir, table, self.n_rows, _JOIN_SECONDS)
        if duckdb is None:
            self._print("DuckDB is not installed, so it is not compared; to include it: pip install 'vedette[demo]'")
        else:
            timed_joins["DuckDB, split by hand"] = duckdb
        is_right = True
        self._console.print()
        for name, join in timed_joins.items():
            ours = stream.count_hits_before(join.n_rows)
            report.joins[name] = join.scaled_to(self.n_rows)
            if join.n_rows == self.n_rows:
                report.measured_joins.add(name)
            ratio = report.joins[name] / report.match.seconds
            self._print(
                f"{name}: {join.seconds:.1f} s for {join.n_rows:,} ticks, about "
                f"[bold]{in_words(report.joins[name])}[/] for all {self.n_rows:,}. Vedette took "
                f"{in_words(report.match.seconds)}: about [bold]{_compare_speed(ratio)}[/]."
            )
            if join.n_pairs != ours:
                is_right = False
                self._print(f"[red]But on these ticks {name} finds {join.n_pairs:,} hits and Vedette {ours:,}.[/]")
        return is_right

    def _print(self, text: str) -> None:
        """Print a sentence, every line indented."""
        self._console.print(Padding(text, (0, 2)))

    @contextmanager
    def _step(self, doing: str) -> Iterator[None]:
        """Show the current step, then how long it took."""
        with timed() as seconds:
            if self.quiet or not sys.stdout.isatty():
                yield
            else:
                with self._console.status(f"  {doing}"):
                    yield
        self._console.print(f"  {doing}: {seconds():.1f} s")


def _compare_speed(ratio: float) -> str:
    """How much faster, to two digits because part of it is extrapolated."""
    if ratio >= 1:
        return f"{float(f'{ratio:.2g}'):,g} times faster"
    return f"{float(f'{1 / ratio:.2g}'):,g} times slower"
