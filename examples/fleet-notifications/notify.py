"""Notifications of a fleet: when a van stays in a zone, the owner of the zone gets a signed POST request.

Run: python examples/fleet-notifications/notify.py
"""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

from picture import draw
from receiver import Inbox, receive
from region import SCHEMA, Zone, drive, make_zones, write_files

import vedette as vd

PIPELINE = Path(__file__).with_name("pipeline.toml")
SHOWN = 8


def register(zones: list[Zone], url: str) -> None:
    """Put the zones into a registry, where they can be changed while a pipeline runs."""
    registry = vd.Registry(url)
    registry.create("zones", kind="border", schema=SCHEMA)
    with registry.change("zones") as change:
        for zone in zones:
            change.add(zone.id, zone.text, metadata={"owner": zone.owner})
    registry.close()


def vedette(*arguments: str, **variables: str) -> None:
    """A command in its own process."""
    command = [sys.executable, "-c", "from vedette.cli import main; main()", *arguments]
    subprocess.run(command, env=os.environ | variables, check=True)


def show(inbox: Inbox, zones: list[Zone]) -> None:
    events = sorted(inbox.events.values(), key=lambda event: (event["time"], event["van"]))
    print(f"\n{len(events)} notifications came, {inbox.n_repeated} of them again, in {len(inbox.requests)} requests:")
    for what, n in Counter(luck for _, luck, _ in inbox.requests).most_common():
        print(f"  {n:3} {what}")
    for event in events[:SHOWN]:
        print(f"  {event['time'][11:19]}  {event['van']:6} {event['event']:5} {event['query']}")
    n_zones = len({event["query"] for event in events})
    print(f"  ... and {max(0, len(events) - SHOWN)} more, about {n_zones} of {len(zones)} zones")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vans", type=int, default=9)
    parser.add_argument("--minutes", type=int, default=90)
    parser.add_argument("--seed", type=int, default=4)
    parser.add_argument("--output-dir", type=Path, default=Path("demo-report/fleet-notifications"))
    chosen = parser.parse_args(arguments)

    folder: Path = chosen.output_dir.absolute()
    shutil.rmtree(folder, ignore_errors=True)
    zones = make_zones(chosen.seed)
    rows = drive(zones, chosen.vans, chosen.minutes, chosen.seed)
    write_files(rows, folder / "positions", n_files=12)
    register(zones, f"sqlite:///{folder}/zones.db")
    print(f"{len(zones)} zones, {chosen.vans} vans, {len(rows):,} positions")

    secret = secrets.token_hex(16)
    with receive(secret, chosen.seed) as (url, inbox):
        variables = {"FOLDER": str(folder), "URL": url, "FLEET_SECRET": secret}
        vedette("run", str(PIPELINE), **variables)
        print("\nWhat could not be processed or delivered:")
        vedette("dead-letters", "list", str(PIPELINE), "--table", **variables)
    show(inbox, zones)
    draw(zones, rows, list(inbox.events.values()), inbox.requests, folder / "notifications.png")
    print(f"Picture: {chosen.output_dir / 'notifications.png'}")


if __name__ == "__main__":
    main()
