"""A real broker for the tests of this folder, or the reason why there is none; either is told at the end of the run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "kafka-alerts"
_TOLD: list[str] = []


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


@pytest.fixture
def broker(example, tmp_path):
    """A broker that nobody else uses."""
    module, _ = example
    try:
        jars = module.fetch()
    except module.KafkaMissing as reason:
        _TOLD.append(f"skipped, because the broker or the connector cannot be had: {reason}")
        pytest.skip(_TOLD[-1])
    started = module.Broker.start(jars, tmp_path / "kafka")
    _TOLD.append(f"ran against a broker of {sorted(jars.glob('broker/kafka_2.13-*.jar'))[0].stem}")
    yield started
    started.stop()


def pytest_terminal_summary(terminalreporter):
    """Say whether tests ran against Kafka."""
    for told in dict.fromkeys(_TOLD):
        terminalreporter.write_line(f"Kafka: {told}")
