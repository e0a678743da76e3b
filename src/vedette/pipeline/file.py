"""A pipeline's file: what it may say, and how it is read. Every mistake is told with its key, all of them at once."""

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
from vedette.pipeline.rules import find_unmet
from vedette.pipeline.section import Options, Section, Text, check_duration
from vedette.pipeline.sink import Sink
from vedette.pipeline.source import Source, read_avro_schema
from vedette.pipeline.validation import Mistake, tell_mistakes
from vedette.pipeline.variables import Variables

AVAILABLE_NOW = "available now"


def _read_trigger(value: Any) -> Any:
    if isinstance(value, str) and value != AVAILABLE_NOW:
        try:
            check_duration(value)
        except ValueError:
            raise ValueError(
                f"it is {value!r}; it takes a duration such as '10 seconds', or '{AVAILABLE_NOW}'; left out, a batch "
                f"follows the other"
            ) from None
    return value


class RegistryPart(Section):
    """Which queries stand."""

    url: Text = Field(description="the registry, as in: sqlite:///alerts.db, or postgresql://user@host/name")
    set: Text = Field(description="the name of the query set")
    version: int | None = Field(None, description="a version to stay at; left out, the set is followed as it changes")
    snapshots: Text | None = Field(None, description="where compiled sets are kept, a folder or a store's address")
    retry_seconds: float = Field(30, description="seconds for which a database out of reach is tried again", gt=0)


# In any case of letters, as Spark takes it.
LogLevel = Annotated[
    Literal["OFF", "FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE"],
    BeforeValidator(lambda level: level.upper() if isinstance(level, str) else level),
]


class SparkPart(Section):
    """The Spark session."""

    master: Text | None = Field(None, description="where Spark runs; unless Spark is configured otherwise, local[*]")
    remote: Text | None = Field(None, description="a Spark Connect server instead, as in: sc://host")
    packages: list[Text] = Field(default_factory=list, description="Maven coordinates of connectors to fetch")
    jars: list[Text] = Field(default_factory=list, description="files of connectors, * for all of a folder")
    log_level: LogLevel = Field("OFF", description="what Spark itself says on standard error")
    settings: Options = Field(default_factory=dict, description="settings of Spark, under their full names")

    @property
    def server(self) -> str | None:
        """The address of a Spark Connect server that runs already, where the file names one."""
        return self.remote if self.remote is not None and self.remote.startswith("sc://") else None

    @model_validator(mode="after")
    def _check_server(self) -> Self:
        for name in ("packages", "jars"):
            if self.server is not None and getattr(self, name):
                raise ValueError(
                    f"a Spark Connect server is started with its {name}; here, with remote, leave them out"
                )
        return self


class PipelineFile(Section):
    """Source, registry, operator and sinks of a pipeline that `vedette run` runs."""

    name: Text = Field("", description="names the pipeline in Spark and in what is logged")
    checkpoint: Text = Field(description="the folder in which Spark keeps how far each sink has come")
    trigger: Annotated[Text | None, BeforeValidator(_read_trigger)] = Field(
        None, description="how often a micro-batch starts, as in: 10 seconds; or: available now"
    )
    source: Source | None = Field(None, description="where the rows come from")
    sources: dict[str, Source] | None = Field(None, description="of a join: where the rows of each stream come from")
    registry: RegistryPart = Field(description="the table that tells which queries stand")
    operator: Operator = Field(description="the table that tells what is done with the rows")
    sink: list[Sink] = Field(description="where the answers go: one table [[sink]] or more", min_length=1)
    spark: SparkPart = Field(SparkPart.model_validate({}), description="the Spark session")

    @model_validator(mode="before")
    @classmethod
    def _name_sinks(cls, data: Any) -> Any:
        """A sink without a name has that of its format."""
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
                "rows come from a table [source], or for a join from tables [sources.left], [sources.right]"
            )
        if self.operator.has_streams and self.sources is None:
            raise ValueError(
                f"a {self.operator.kind} has streams: write [sources.left] and [sources.right], not [source]"
            )
        if not self.operator.has_streams and self.source is None:
            raise ValueError(f"{self.operator.kind} takes one stream: write [source], not [sources]")
        names = [sink.name for sink in self.sink]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"{names.count(twice[0])} sinks are named {twice[0]!r}; give each a `name` of its own")
        return self

    @property
    def streams(self) -> dict[str, Source]:
        """The sources by stream; of a single one the stream has no name."""
        if self.sources is not None:
            return self.sources
        assert self.source is not None
        return {"": self.source}


@dataclass(frozen=True)
class ReadFile:
    """A pipeline's file, and what hides the environment's secrets."""

    path: Path
    plan: PipelineFile
    variables: Variables

    @classmethod
    def read(cls, path: Path, environment: Mapping[str, str] | None = None) -> ReadFile:
        """The file, checked; raises a FileError with all that is wrong, a line for each."""
        try:
            written = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise FileError(f"cannot read {path}: {error.strerror}; `vedette init` writes an example") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise FileError(f"{path} is no TOML: {error}") from None
        variables = Variables(os.environ if environment is None else environment, path.absolute().parent)
        data = variables.put_in(written)
        mistakes = list(variables.mistakes)
        plan = None
        try:
            plan = PipelineFile.model_validate(data)
        except ValidationError as error:
            told = {key for key, _ in mistakes}
            mistakes += [mistake for mistake in tell_mistakes(error, PipelineFile, written) if mistake[0] not in told]
        if plan is not None:
            mistakes += [*_find_unreadable(plan), *find_unmet(plan)]
        if mistakes or plan is None:
            raise FileError(variables.hide(_list_mistakes(path, mistakes)))
        return cls(path, plan if plan.name else plan.model_copy(update={"name": path.stem}), variables)


def _list_mistakes(path: Path, mistakes: list[Mistake]) -> str:
    lines = [f"{key}: {sentence}" if key else sentence for key, sentence in mistakes]
    return f"{path}: {lines[0]}" if len(lines) == 1 else "\n  ".join([f"{path} has {len(lines)} mistakes", *lines])


def _find_unreadable(plan: PipelineFile) -> list[Mistake]:
    """Mistakes about files beside the pipeline's own."""
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
