"""A pipeline file: its keys, and how it is read. All errors are reported at once, each with its key."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from vedette.errors import FileError
from vedette.pipeline.operators import Operator
from vedette.pipeline.rules import find_conflicts
from vedette.pipeline.section import Options, Section, Text, check_duration
from vedette.pipeline.sink import Sink
from vedette.pipeline.source import Source, read_avro_schema
from vedette.pipeline.validation import Mistake, find_mistakes
from vedette.pipeline.variables import Variables

AVAILABLE_NOW = "available now"
REGISTRY = "registry"


def _read_trigger(value: Any) -> Any:
    if isinstance(value, str) and value != AVAILABLE_NOW:
        try:
            check_duration(value)
        except ValueError:
            raise ValueError(
                f"it is {value!r}; it must be a duration such as '10 seconds', or '{AVAILABLE_NOW}'; by default "
                f"micro-batches follow each other without a pause"
            ) from None
    return value


class RegistryPart(Section):
    """The query set of the pipeline."""

    url: Text = Field(description="the registry: sqlite:///alerts.db, or postgresql://user@host/name")
    set: Text = Field(description="the name of the query set")
    version: int | None = Field(None, description="a fixed version; by default the set is followed as it changes")
    snapshots: Text | None = Field(None, description="the place of compiled sets, a folder or the address of a store")
    retry_seconds: float = Field(
        30, description="seconds for which calls are retried if the database cannot be reached", gt=0
    )
    on_registry_outage: Literal["stop", "last"] = Field(
        "stop",
        description="then: stop, or continue with the version of the last micro-batch until the database is back",
    )


# Case does not matter, as in Spark.
LogLevel = Annotated[
    Literal["OFF", "FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE"],
    BeforeValidator(lambda level: level.upper() if isinstance(level, str) else level),
]


class SparkPart(Section):
    """The Spark session."""

    master: Text | None = Field(
        None, description="the Spark master; by default what Spark is configured with, or local[*]"
    )
    remote: Text | None = Field(None, description="a Spark Connect server instead: sc://host")
    packages: list[Text] = Field(default_factory=list, description="Maven coordinates of connectors to download")
    jars: list[Text] = Field(
        default_factory=list, description="jar files of connectors; * matches all files of a folder"
    )
    log_level: LogLevel = Field("OFF", description="log level of Spark on standard error")
    settings: Options = Field(default_factory=dict, description="Spark settings, by their full names")

    @property
    def server(self) -> str | None:
        """The address of a running Spark Connect server, if the file has one."""
        return self.remote if self.remote is not None and self.remote.startswith("sc://") else None

    @model_validator(mode="after")
    def _check_server(self) -> Self:
        for name in ("packages", "jars"):
            if self.server is not None and getattr(self, name):
                raise ValueError(
                    f"{name} cannot be set with remote: a Spark Connect server has its own {name}; omit the key, and "
                    f"start the server with them"
                )
        return self


class StatusPart(Section):
    """What the pipeline writes about itself into the registry."""

    events: int = Field(
        0,
        description="the last answers of each sink that are kept in the registry for `vedette serve`",
        ge=0,
        le=10_000,
    )


class PipelineFile(Section):
    """Source, registry, operator and sinks of a pipeline that `vedette run` runs."""

    name: Text = Field("", description="the name of the pipeline in Spark and in logs")
    checkpoint: Text = Field(description="the folder of Spark's checkpoints")
    trigger: Annotated[Text | None, BeforeValidator(_read_trigger)] = Field(
        None, description="how often a micro-batch starts: 10 seconds, or: available now"
    )
    dead_letters: Text = Field(
        REGISTRY, description="where rows and events go that cannot be processed or delivered: registry, or a folder"
    )
    source: Source | None = Field(None, description="the stream of rows")
    sources: dict[str, Source] | None = Field(None, description="for a join: the streams of rows, by name")
    registry: RegistryPart = Field(description="the query set")
    operator: Operator = Field(description="the operator and its options")
    sink: list[Sink] = Field(description="where answers are written: one or more tables [[sink]]", min_length=1)
    spark: SparkPart = Field(SparkPart.model_validate({}), description="the Spark session")
    status: StatusPart = Field(StatusPart.model_validate({}), description="what it writes about itself")

    @model_validator(mode="before")
    @classmethod
    def _name_sinks(cls, data: Any) -> Any:
        """The default name of a sink is its format."""
        sinks = data.get("sink") if isinstance(data, dict) else None
        if not isinstance(sinks, list):
            return data
        named = [
            {"name": sink["format"], **sink} if isinstance(sink, dict) and isinstance(sink.get("format"), str) else sink
            for sink in sinks
        ]
        return {**data, "sink": named}

    @model_validator(mode="after")
    def _check_parts(self) -> Self:
        if (self.source is None) == (self.sources is None):
            raise ValueError(
                "one of source and sources is required: write a table [source], or for a join of two streams "
                "[sources.left] and [sources.right]"
            )
        if self.operator.has_streams and self.sources is None:
            raise ValueError(
                f"a {self.operator.kind} reads several streams: write [sources.left] and [sources.right], not [source]"
            )
        if not self.operator.has_streams and self.source is None:
            raise ValueError(f"{self.operator.kind} reads one stream: write [source], not [sources]")
        names = [sink.name for sink in self.sink]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"{names.count(twice[0])} sinks are named {twice[0]!r}; give each its own `name`")
        return self

    @property
    def dead_letter_place(self) -> str:
        """A folder, or the address of the registry."""
        return self.registry.url if self.dead_letters == REGISTRY else self.dead_letters

    @property
    def streams(self) -> dict[str, Source]:
        """The sources by stream; a single stream has no name."""
        if self.sources is not None:
            return self.sources
        assert self.source is not None
        return {"": self.source}


@dataclass(frozen=True)
class ReadFile:
    """A pipeline file, and the variables whose values must not be shown."""

    path: Path
    plan: PipelineFile
    variables: Variables

    @classmethod
    def read(cls, path: Path, environment: Mapping[str, str] | None = None) -> ReadFile:
        """The validated file; raises FileError with all errors, one per line."""
        try:
            written = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise FileError(f"cannot read {path}: {error.strerror}; `vedette init` writes an example") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise FileError(f"{path} is not valid TOML: {error}") from None
        variables = Variables(os.environ if environment is None else environment, path.absolute().parent)
        data = variables.substitute(written)
        mistakes = list(variables.mistakes)
        plan = None
        try:
            plan = PipelineFile.model_validate(data)
        except ValidationError as error:
            known = {key for key, _ in mistakes}
            mistakes += [mistake for mistake in find_mistakes(error, PipelineFile, written) if mistake[0] not in known]
        if plan is not None:
            mistakes += [*_find_unreadable(plan), *find_conflicts(plan)]
        if mistakes or plan is None:
            raise FileError(variables.hide(_list_mistakes(path, mistakes)))
        return cls(path, plan if plan.name else plan.model_copy(update={"name": path.stem}), variables)


def _list_mistakes(path: Path, mistakes: list[Mistake]) -> str:
    lines = [f"{key}: {sentence}" if key else sentence for key, sentence in mistakes]
    return f"{path}: {lines[0]}" if len(lines) == 1 else "\n  ".join([f"{path} has {len(lines)} mistakes", *lines])


def _find_unreadable(plan: PipelineFile) -> list[Mistake]:
    """Errors in files that the pipeline file refers to."""
    given = {
        f"{'source' if not stream else f'sources.{stream}'}.avro_schema": source.avro_schema
        for stream, source in plan.streams.items()
    }
    given |= {f"sink {number}.avro_schema": sink.avro_schema for number, sink in enumerate(plan.sink, start=1)}
    mistakes = []
    for key, schema in given.items():
        try:
            if schema is not None:
                read_avro_schema(schema)
        except ValueError as error:
            mistakes.append((key, str(error)))
    return mistakes
