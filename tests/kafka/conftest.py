"""A real broker for the tests of this folder, or the reason why there is none; either is told at the end of the run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.services import REPORTED

EXAMPLE = Path(__file__).parents[2] / "examples" / "kafka-alerts"


@pytest.fixture(scope="session")
def example():
    """The modules of the example: broker and watch."""
    sys.path.insert(0, str(EXAMPLE))
    import broker
    import watch

    yield broker, watch
    sys.path.remove(str(EXAMPLE))
    for name in ("broker", "watch"):
        sys.modules.pop(name)


@pytest.fixture(scope="session")
def jars(example):
    """The folder with the broker and the connectors."""
    module, _ = example
    try:
        folder = module.fetch()
    except module.KafkaMissing as reason:
        told = f"Kafka and Avro: skipped, because the broker or the connectors cannot be had: {reason}"
        REPORTED.add(told)
        pytest.skip(told)
    found = [
        path.stem for kind in ("broker/kafka_*", "connector/spark-*") for path in sorted(folder.glob(f"{kind}.jar"))
    ]
    REPORTED.add(f"Kafka and Avro: ran with {', '.join(found)}")
    return folder


@pytest.fixture
def broker(example, jars, tmp_path):
    """A broker that nobody else uses."""
    started = example[0].Broker.start(jars, tmp_path / "kafka")
    yield started
    started.stop()
