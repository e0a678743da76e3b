"""Removes queries with once="query" from their registry after a stream has reported them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from vedette.errors import PipelineError, VedetteError

if TYPE_CHECKING:
    from vedette.registry.read.followed import Followed

_log = logging.getLogger(__name__)


class RemoveReported(StreamingQueryListener):
    """A listener of a session: `spark.streams.addListener(vs.RemoveReported(registry.follow("alerts")))`.

    It runs on the driver. When a stream of the session has committed a micro-batch, it removes the queries that this or
    an earlier micro-batch of the stream has reported. `vedette run` does the same. If the registry cannot be reached,
    it logs a warning and tries again after the next micro-batch: a stream never reports a query twice, so a late
    removal changes no answer.
    """

    def __init__(self, queries: Followed) -> None:
        if not hasattr(queries, "to_plain"):
            raise PipelineError(
                f"vs.RemoveReported needs a set that is followed, the result of registry.follow; got "
                f"{type(queries).__name__}"
            )
        self._queries = queries

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        progress = event.progress
        if "addBatch" not in (progress.durationMs or {}):
            return  # idle: the micro-batch of this number has not run
        try:
            self._queries.registry.remove_reported(self._queries.name, {str(progress.id): int(progress.batchId)})
        except VedetteError as error:
            _log.warning("queries that were reported are not removed yet from set %r: %s", self._queries.name, error)

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        pass
