"""`vedette serve dashboard`."""

from __future__ import annotations


def dashboard() -> None:
    """Print the Grafana dashboard of the service, as the JSON file that Grafana imports."""
    from vedette.serve.dashboard import make_dashboard

    print(make_dashboard())
