"""The part of a sink that sends answers to webhooks. Its keys are the options of `vedette.spark.webhook`."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from vedette.delivery.options import ATTEMPTS, CONNECTIONS, MAX_EVENTS, TIME_LIMIT, TIMEOUT, WebhookOptions
from vedette.errors import VedetteError
from vedette.pipeline.section import Duration, Section, Text

FORMAT = "webhook"


class WebhookPart(Section):
    """Where events are sent, and how."""

    url: Text | None = Field(None, description="the URL that events are sent to")
    url_column: Text | None = Field(None, description="instead of url: a column or expression with each event's URL")
    group_by: Text | None = Field(None, description="an expression: only events with the same value are sent together")
    id_column: Text | None = Field(None, description="the column with the event's id; by default event_id")
    secret_env: Text | None = Field(None, description="the environment variable with the secret of signatures")
    secret_file: Text | None = Field(None, description="the file with the secret of signatures")
    allow_addresses: list[Text] = Field(
        default_factory=list, description="addresses and networks that are allowed although they are not public"
    )
    max_events: int = Field(MAX_EVENTS, description="events per request")
    attempts: int = Field(ATTEMPTS, description="tries of a request")
    timeout: Duration = Field(TIMEOUT, description="for one try")
    time_limit: Duration = Field(TIME_LIMIT, description="for all requests of a micro-batch")
    connections: int = Field(CONNECTIONS, description="connections of a task")
    tasks: int = Field(1, description="tasks that send at the same time", gt=0, le=10_000)

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        if (self.url is None) == (self.url_column is None):
            raise ValueError("one of url and url_column is required: all events go to one URL, or each to its own")
        try:
            self.sending()
        except VedetteError as error:
            raise ValueError(error.reason) from None
        return self

    def sending(self) -> WebhookOptions:
        """The options of delivery. Raises VedetteError with the key if one is invalid."""
        return WebhookOptions.read(
            self.url,
            **self.model_dump(exclude={"url", "url_column", "group_by", "id_column", "tasks"}),
            has_secret_per_group=self.url_column is not None,
        )
