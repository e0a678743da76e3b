"""`vedette serve dashboard`."""

from __future__ import annotations

from vedette.cli.options import QuietOption


def dashboard(quiet: QuietOption = False) -> None:
    """Print the Grafana dashboard of the service, as the JSON file that Grafana imports."""
    from vedette.serve.dashboard import make_dashboard

    print(make_dashboard())
