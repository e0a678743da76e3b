"""`vedette demo`: a made-up market, a hundred thousand alerts, a Spark stream, and the answer checked and compared."""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from vedette.cli.progress import show_progress, timed
from vedette.demo.market import Market
from vedette.demo.report import Report, in_words
from vedette.errors import FileError
from vedette.queries.query_set import QuerySet

if TYPE_CHECKING:
    from vedette.demo.stream import Comparison
    from vedette.demo.stream import Demo as SparkDemo

_FILES, _FILES_PER_BATCH = 48, 4  # the ticks come in so many files, some of them to a micro-batch
_CHECKED = 20  # alerts whose ticks are compared with Spark's filter
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
        """Show it all; whether the answers agree with Spark's own."""
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
        from vedette.demo.stream import Demo as SparkDemo
        from vedette.spark.log_filter import quiet_end

        self._console.print(
            f"\n[bold]Vedette[/]: {self.n_alerts:,} standing queries watch {self.n_rows:,} ticks of a market\n"
        )
        market = Market.open(self.seed)
        with self._step("making the market and its alerts"):
            table = market.alerts(self.n_alerts)
            ticks_dir = self._write_ticks(market, work_dir)
        alerts = QuerySet(market.schema)
        with self._step(f"loading {self.n_alerts:,} alerts, written in SQL"):
            alerts.add_many(table["id"], table["where"])
        self._show_examples(table)
        with self._step("starting Spark here, on this machine's cores"):
            spark = vs.session("vedette demo")
            quiet_end()
            demo = SparkDemo(spark, ticks_dir, work_dir)
            demo.warm_up(alerts)
        report = Report(self.n_rows, self.n_alerts, self.seed)
        report.stream_seconds, report.n_hits = self._stream(demo, alerts)
        if not report.n_hits:
            self._say("no tick hit an alert, so there is nothing to show; use more --rows or more --alerts")
            spark.stop()
            return True
        texts = dict(zip(table["id"].to_pylist(), table["where"].to_pylist(), strict=True))
        self._show_answers(demo, texts, report)
        is_right = self._check(demo, texts, report)
        comparison = self._compare(demo, table)
        is_right = self._show_comparison(comparison, report) and is_right
        with self._step("drawing the report"):
            path = report.write(self.output_dir)
        self._console.print(f"\nThe report: [bold]{path}[/] (its picture alone: {path.with_suffix('.png').name})\n")
        spark.stop()
        return is_right

    def _write_ticks(self, market: Market, work_dir: Path) -> Path:
        """The day's ticks as files, the earliest first."""
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

    def _stream(self, demo: SparkDemo, alerts: QuerySet) -> tuple[float, int]:
        with timed() as seconds, show_progress("  streaming", self.n_rows, self.quiet) as advance:
            for progress in demo.stream(alerts, _FILES_PER_BATCH):
                advance(progress.n_rows, progress.n_rows)
        rate = progress.n_rows / seconds()
        self._say(
            f"streamed {progress.n_rows:,} ticks in {progress.n_batches} micro-batches: [bold]{seconds():.1f} s[/], "
            f"{rate:,.0f} ticks a second, [bold]{progress.n_pairs:,}[/] hits"
        )
        return seconds(), progress.n_pairs

    def _show_answers(self, demo: SparkDemo, texts: dict[str, str], report: Report) -> None:
        with self._step("reading the hits"):
            counts = demo.count_hits()
            report.symbols = demo.busiest_symbols(counts, _TOP)
            report.alerts = [(alert, texts[alert], *rest) for alert, *rest in demo.most_triggered(counts, _TOP)]
            report.n_triggered = demo.count_triggered(counts)
            counts.unpersist()
            report.by_minutes = demo.hits_by_minutes(10)
            if report.alerts:
                report.choose_shown()
                report.prices = demo.prices(report.shown_symbol, 4000)
                report.firings = demo.firings(report.shown_alert, 2000)
        symbols = Table(
            "symbol", "hits", "alerts hit", "lowest", "highest", title="Busiest symbols", title_justify="left"
        )
        for symbol, n_hits, n_alerts, low, high in report.symbols:
            symbols.add_row(symbol, f"{n_hits:,}", f"{n_alerts:,}", f"{low:.2f}", f"{high:.2f}")
        alerts = Table("alert", "hits", "first", "last", "text", title="Most triggered alerts", title_justify="left")
        for alert, text, n_hits, first, last in report.alerts:
            alerts.add_row(alert, f"{n_hits:,}", f"{first:%H:%M:%S}", f"{last:%H:%M:%S}", text)
        for table in (symbols, alerts):
            for column in table.columns[1:]:
                column.justify = "left" if column.header == "text" else "right"
            self._console.print()
            self._console.print(table)
        self._console.print(f"\n  {report.n_triggered:,} of the {self.n_alerts:,} alerts were hit at least once.\n")

    def _check(self, demo: SparkDemo, texts: dict[str, str], report: Report) -> bool:
        """Compare a sample, half of it alerts that were hit, with what Spark's own filter keeps."""
        hit = [alert for alert, *_ in report.alerts]
        sample = hit + random.Random(self.seed).sample(
            sorted(texts.keys() - set(hit)), min(_CHECKED - len(hit), len(texts) - len(hit))
        )
        with show_progress("  checking", len(sample), self.quiet) as advance:
            wrong = demo.check(sample, [texts[alert] for alert in sample], lambda n: advance(n, 0))
        for alert, ours, sparks in wrong:
            self._console.print(
                f"  [red]{alert}: {ours:,} hits, but Spark's filter keeps {sparks:,} ticks[/]  {texts[alert]}"
            )
        report.n_checked, report.n_wrong = len(sample), len(wrong)
        if not wrong:
            self._say(
                f"[green]checked[/] {len(sample)} alerts against Spark's own filter(text): the same ticks, each time"
            )
        return not wrong

    def _compare(self, demo: SparkDemo, table: pa.Table) -> Comparison:
        with self._step("timing Spark's own nested-loop join on a slice"):
            return demo.time_nested_loop(table, _JOIN_SECONDS)

    def _show_comparison(self, comparison: Comparison, report: Report) -> bool:
        report.join_seconds = comparison.seconds * self.n_rows / comparison.n_rows
        report.join_slice = (comparison.n_rows, comparison.seconds)
        ratio = report.join_seconds / report.stream_seconds
        self._say(
            f"\nSpark's own join compares every tick with every alert. It took {comparison.seconds:.1f} s "
            f"for {comparison.n_rows:,} ticks, so for all {self.n_rows:,} it would need roughly "
            f"[bold]{in_words(report.join_seconds)}[/]. "
            f"Vedette took {in_words(report.stream_seconds)}: roughly [bold]{_rounded(ratio):,} times[/] faster."
        )
        if comparison.n_pairs != comparison.n_pairs_ours:
            self._say(
                f"[red]But on that slice the join finds {comparison.n_pairs:,} hits "
                f"and Vedette {comparison.n_pairs_ours:,}.[/]"
            )
        return comparison.n_pairs == comparison.n_pairs_ours

    def _say(self, text: str) -> None:
        """Print a sentence, indented however it is wrapped."""
        self._console.print(Padding(text, (0, 2)))

    @contextmanager
    def _step(self, doing: str) -> Iterator[None]:
        """Say what is being done while it is, and how long it took."""
        with timed() as seconds:
            if self.quiet or not sys.stdout.isatty():
                yield
            else:
                with self._console.status(f"  {doing}"):
                    yield
        self._console.print(f"  {doing}: {seconds():.1f} s")


def _rounded(ratio: float) -> int:
    """Two digits of a figure that rests on a slice."""
    return int(float(f"{ratio:.2g}"))
