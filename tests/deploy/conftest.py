"""The built package, environments with it, and a standalone cluster, made once per test run."""

from __future__ import annotations

import os

import pytest

from tests.deploy.cluster import Cluster
from tests.deploy.environments import Environments, UnavailableError
from tests.services import REPORTED


@pytest.fixture(scope="session")
def environments(tmp_path_factory):
    """Environments that all processes of this test run share."""
    base = tmp_path_factory.getbasetemp()
    return Environments((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "environments")


@pytest.fixture(scope="session")
def environment(environments):
    """Makes an environment: its interpreter. The test is skipped if packages cannot be downloaded."""

    def make(name, *packages, **options):
        try:
            return environments.make(name, *packages, **options)
        except UnavailableError as reason:
            told = f"Installed packages: skipped, because packages cannot be downloaded: {reason}"
            REPORTED.add(told)
            pytest.skip(told)

    return make


@pytest.fixture(scope="session")
def core(environment, environments):
    """An environment with the core alone, from the wheel."""
    return environment("core", environments.wheel())


@pytest.fixture(scope="session")
def standalone(tmp_path_factory):
    """A standalone cluster: a master and two workers with two slots each, on the loopback interface."""
    with Cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster
