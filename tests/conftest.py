"""What tests share: one Spark session for all that need one in this process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Compiling a kernel takes seconds, so an example's first run says nothing about its time. More examples:
# HYPOTHESIS_PROFILE=hunt make test
settings.register_profile("default", deadline=None, max_examples=100)
settings.register_profile("hunt", deadline=None, max_examples=5000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from vedette import spark as vs

    session = vs.session("vedette tests", master="local[2]", log_level="OFF")
    yield session
    session.stop()
