"""What tests of Spark share: pipelines in processes of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from spark.pipelines import Pipeline


@pytest.fixture
def pipeline(request, tmp_path):
    """The program beside the test that its module names PIPELINE."""
    made = Pipeline(Path(__file__).with_name(request.module.PIPELINE), tmp_path)
    yield made
    made.kill()
