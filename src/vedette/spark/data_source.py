"""A registry as a data source of Spark, under the format "vedette".

    spark.read.format("vedette").option("set", "alerts").load()
    new.write.format("vedette").option("set", "alerts").mode("append").save()

The classes below are sent to other Python processes, on the driver and on workers. They import this package only when
they run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)

from vedette import __version__
from vedette.registry.read.followed import address_of
from vedette.spark.shipping.query_sets import worker_function

if TYPE_CHECKING:
    from vedette.registry.registry import Registry

FORMAT = "vedette"
_WORKER = "vedette.spark.workers.registry_source"


def make_data_source(registry: Registry) -> type[DataSource]:
    """The data source of a registry, for `spark.dataSource.register`."""
    where = address_of(registry)

    def function(name: str) -> Any:
        return worker_function(_WORKER, name, __version__, where)

    read_schema, plan_read, read = function("read_schema"), function("plan_read"), function("read")
    check_columns, gather, commit = function("check_columns"), function("gather"), function("commit")

    class Part(InputPartition):
        pass

    class Reader(DataSourceReader):
        def __init__(self, options: dict[str, str], names: list[str]) -> None:
            self._options = options
            self._names = names

        def partitions(self) -> list[InputPartition]:
            return [Part(plan_read(self._options))]

        def read(self, partition: InputPartition) -> Iterator[Any]:
            return iter(read(partition.value, self._names))

    class Message(WriterCommitMessage):
        def __init__(self, content: bytes) -> None:
            self.content = content

    class Writer(DataSourceArrowWriter):
        def __init__(self, options: dict[str, str], columns: list[tuple[str, str]], overwrite: bool) -> None:
            check_columns(options, columns)
            self._options = options
            self._overwrite = overwrite

        def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
            return Message(gather(iterator))

        def commit(self, messages: list[Any]) -> None:
            contents = [message.content for message in messages if message is not None]
            commit(self._options, self._overwrite, contents)

    class Vedette(DataSource):
        @classmethod
        def name(cls) -> str:
            return FORMAT

        def schema(self) -> Any:
            return read_schema(dict(self.options))

        def reader(self, schema: Any) -> DataSourceReader:
            return Reader(dict(self.options), schema.fieldNames())

        def writer(self, schema: Any, overwrite: bool) -> Any:
            columns = [(field.name, field.dataType.simpleString()) for field in schema.fields]
            return Writer(dict(self.options), columns, overwrite)

    return Vedette
