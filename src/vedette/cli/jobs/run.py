"""`vedette run`: runs a pipeline from its file, with signals, progress, logs and exit codes.

Exit codes: 0 it ended or was stopped; 2 the file or the set is invalid; 3 it failed while it ran; 4 it could not start
for a reason that may go away: the registry or a Spark Connect server is unreachable, or a disk is full.
"""

from __future__ import annotations

import errno
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from vedette.errors import PipelineError, RegistryError, VedetteError, count
from vedette.extras import check_extra
from vedette.pipeline.checks import check_hosts, check_set, describe_set, warn_unreachable
from vedette.pipeline.explanation import explain
from vedette.pipeline.file import ReadFile
from vedette.pipeline.registered_set import count_queries, try_to_pin
from vedette.run.display import Display, WarningHandler, open_display, own_stderr
from vedette.run.metrics import read_address, serve_metrics
from vedette.run.signals import Signals, handled_signals
from vedette.run.status import SinkStatus, Status
from vedette.run.status_writer import StatusWriter
from vedette.run.watch import Watch

if TYPE_CHECKING:
    from vedette.registry.read.followed import Followed
    from vedette.registry.registry import Registry
    from vedette.run.pipeline import Pipeline
    from vedette.run.progress import Running

ENDED, REFUSED, FAILED, UNREACHABLE = 0, 2, 3, 4
_RETRYABLE = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ESTALE)
_POLL_SECONDS = 0.25
_ON_TERMINAL = ("console",)  # sinks that write where progress is shown


@dataclass(frozen=True)
class RunOptions:
    dry_run: bool = False
    log: str = "text"
    metrics: str | None = None
    stop_seconds: float = 60.0
    quiet: bool = False


def run_pipeline(path: Path, options: RunOptions) -> int:
    """Run a pipeline until it ends, fails or is stopped. Returns the exit code."""
    if options.log not in ("text", "json"):
        raise PipelineError(f"--log must be text or json; got {options.log!r}")
    with own_stderr() as out:
        return _run_pipeline(path, options, out)


def _run_pipeline(path: Path, options: RunOptions, out: TextIO) -> int:
    try:
        check_extra("spark", "vedette run")
        address = None if options.metrics is None else read_address(options.metrics)
        file = ReadFile.read(path)
    except VedetteError as error:
        display = open_display(out, options.log, options.quiet, False, str)
        display.report("error", "refused", str(error), pipeline=path.stem)
        return REFUSED
    plan = file.plan
    status = Status.begin(plan.name, [sink.name for sink in plan.sink])
    is_torn = any(sink.format in _ON_TERMINAL for sink in plan.sink)
    display = open_display(out, options.log, options.quiet, is_torn, file.variables.hide)
    server = None
    try:
        if options.dry_run:
            with WarningHandler(display, plan.name):
                print(file.variables.hide(_explain(file)))
            return ENDED
        if address is not None:
            server = serve_metrics(status, address)
            where = f"{address[0]}:{server.server_port}"
            message = f"{plan.name}: metrics at http://{where}/metrics"
            display.report("info", "serving", message, pipeline=plan.name, metrics=where)
        with handled_signals() as signals:
            return _Run(file, options, status, display, signals).run()
    except VedetteError as error:
        display.report("error", "refused", str(error), pipeline=plan.name)
        return UNREACHABLE if getattr(error, "is_retryable", False) else REFUSED
    except OSError as error:
        if error.errno not in _RETRYABLE:
            raise
        where = f" {error.filename}" if error.filename else ""
        display.report("error", "refused", f"cannot write{where}: {error.strerror}", pipeline=plan.name)
        return UNREACHABLE
    finally:
        display.close()
        if server is not None:
            server.shutdown()
            server.server_close()


def _open_queries(file: ReadFile) -> tuple[Registry, Followed]:
    """The registry and the set that is followed. A set that does not fit the file is refused before Spark starts."""
    from vedette import Registry

    part = file.plan.registry
    registry = Registry(part.url, snapshots=part.snapshots, create=False, retry_seconds=part.retry_seconds)
    try:
        queries = registry.follow(part.set, version=part.version, on_registry_outage=part.on_registry_outage)
        check_set(file.plan, queries.info)
        check_hosts(file.plan, queries)
        if part.version is None:
            try_to_pin(registry, queries.info)
        return registry, queries
    except RegistryError as error:
        if error.is_retryable:
            raise
        raise error.within(f"{file.path}: registry") from None
    except VedetteError as error:
        raise error.within(file.path) from None


def _explain(file: ReadFile) -> str:
    """The plan in words. Spark checks it; nothing is read."""
    from vedette.run.pipeline import Pipeline
    from vedette.spark.log_filter import quiet_errors

    registry, queries = _open_queries(file)
    plan = file.plan
    warn_unreachable(plan)
    quiet_errors()
    pipeline = Pipeline.open(plan, queries)
    rows = pipeline.rows()
    for sink in plan.sink:
        answers = pipeline.answers(rows, sink)
        pipeline.written(answers, sink)
    columns = {stream: _columns(frame) for stream, frame in rows.items()}
    opened = queries.open(queries.current_version())
    index = (opened if hasattr(opened, "explain") else opened.monitor()).explain().splitlines()
    return explain(plan, _name_queries(file, registry), columns, _columns(answers), index)


def _name_queries(file: ReadFile, registry: Registry) -> str:
    part = file.plan.registry
    return describe_set(file.plan, registry.set(part.set), count_queries(registry, part))


def _columns(frame: Any) -> str:
    return ", ".join(f"{column.name} {column.dataType.simpleString()}" for column in frame.schema.fields)


def _tell_totals(sink: SinkStatus) -> str:
    malformed = f", {sink.n_malformed:,} malformed" if sink.n_malformed else ""
    dead = sink.counts.get("dead_letters", 0)
    letters = f", {count(dead, 'dead letter')}" if dead else ""
    out = count(sink.n_answers, "match", "matches")
    return f"{sink.name} {count(sink.n_rows, 'row')} in, {out} out{malformed}{letters}"


@dataclass
class _Run:
    """One run of a pipeline, from its start to its end."""

    file: ReadFile
    options: RunOptions
    status: Status
    display: Display
    signals: Signals
    handlers: ExitStack = field(default_factory=ExitStack)  # that show warnings

    def __post_init__(self) -> None:
        self.warnings = WarningHandler(self.display, self.status.pipeline)
        self.writer = StatusWriter(self.file.plan, self.status, self.file.variables.hide)

    def run(self) -> int:
        self.writer.start()
        try:
            with self.handlers:
                return self._run()
        except Exception as error:
            self.status.state, self.status.error = "failed", str(error)
            raise
        finally:
            self.writer.close()

    def _run(self) -> int:
        try:
            with self.signals.raised():
                pipeline = self._open()
                self.signals.install()  # Spark has put its own handlers in place
        except KeyboardInterrupt:
            self._tell("stopped", "stopped before it started")
            return ENDED
        from vedette.run.progress import Running

        plan = self.file.plan
        watch = Watch.open(plan.registry, self.status, self.display, self.warnings.show_counted, plan.operator.kind)
        running = Running(pipeline.start())
        self._tell(
            "running", f"running; sinks: {', '.join(self.status.sinks)}", "started", sinks=list(self.status.sinks)
        )
        try:
            while running.is_active and not self.signals.is_stopping:
                watch.look(running)
                time.sleep(_POLL_SECONDS)
            self._stop(running)
            watch.look(running)
            return self._end(running.failure())
        except PipelineError as error:  # Spark has ended
            pipeline.give_up()
            return self._end(str(error))

    def _open(self) -> Pipeline:
        """The pipeline, not yet started. This takes long if the registry does not answer or packages are downloaded."""
        from vedette.run.pipeline import Pipeline
        from vedette.spark.log_filter import listened_by, quiet_errors

        self.handlers.enter_context(self.warnings)
        self.handlers.enter_context(listened_by(self.warnings.show_line))
        registry, queries = _open_queries(self.file)
        warn_unreachable(self.file.plan)
        self._tell("starting", f"starting; {_name_queries(self.file, registry)}")
        quiet_errors()
        return Pipeline.open(self.file.plan, queries)

    def _stop(self, running: Running) -> None:
        if running.failure() is not None:
            running.stop(0)
        elif running.is_active:
            self._tell("stopping", "stopping after the current micro-batch; a second signal stops it at once")
            running.stop(self.options.stop_seconds, lambda: self.signals.is_urgent)

    def _end(self, failure: str | None) -> int:
        """Report how it ended. A failure after a stop is its consequence: the next start repeats the micro-batch."""
        if failure is not None and not self.signals.is_stopping:
            self._tell("failed", f"failed: {failure}", level="error", reason=failure)
            return FAILED
        if failure is not None:
            self._tell("stopping", f"the current micro-batch was cut off: {failure}", "cut off", level="warning")
        state = "stopped" if self.signals.is_stopping else "ended"
        sinks = self.status.sinks.values()
        totals = {
            sink.name: {
                "rows_in": sink.n_rows,
                "matches_out": sink.n_answers,
                "malformed": sink.n_malformed,
                "batches": sink.n_batches,
                **sink.counts,
            }
            for sink in sinks
        }
        self._tell(state, f"{state}; since the start: {'; '.join(map(_tell_totals, sinks))}", sinks=totals)
        self.display.show(self.status, None)
        return ENDED

    def _tell(self, state: str, message: str, event: str = "", level: str = "info", **facts: Any) -> None:
        """Set the state and report it."""
        self.status.state = state
        self.status.error = facts.get("reason", self.status.error)
        self.writer.wake()
        name = self.status.pipeline
        self.display.report(level, event or state, f"{name}: {message}", pipeline=name, **facts)
