"""The report: tables and plots from the results, put between the markers of docs/benchmarks.md and docs/papers.md.

A part that is written here stands between `<!-- begin NAME -->` and `<!-- end NAME -->`. In benchmarks.md these are
`machine`, `summary`, `papers`, and one for the key of each target; in papers.md one for each paper. What was lost is
shown as what was won.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks import claims, results
from benchmarks.plots import OWN_PLOTS, draw_plots
from benchmarks.targets import EVERY_TARGET, PAPERS, TARGETS, Target

DOCS = Path(__file__).parent.parent / "docs"
PAGE, PAPERS_PAGE = DOCS / "benchmarks.md", DOCS / "papers.md"
Row = dict[str, Any]


def write_report(quick: bool) -> int:
    """Write the tables into the page, and the plots beside it; with `quick`, print the tables of the quick results."""
    rows = results.read(quick)
    if not rows:
        print("no results yet; run: python -m benchmarks run", file=sys.stderr)
        return 1
    parts = write_parts(rows)
    if quick:
        print("\n\n".join(parts.values()))
        return 0
    PAGE.write_text(fill_page(PAGE.read_text(), parts))
    PAPERS_PAGE.write_text(fill_page(PAPERS_PAGE.read_text(), write_papers(rows)))
    draw_plots(rows, DOCS / "benchmarks")
    return 0


def write_parts(rows: list[Row]) -> dict[str, str]:
    """What these results say on the page of benchmarks, by the name of its part."""
    parts = {"machine": _machine(rows), "summary": _summary(rows, TARGETS), "papers": _summary(rows, PAPERS)}
    return parts | {target.key: _section(target, rows) for target in EVERY_TARGET}


def fill_page(page: str, parts: Mapping[str, str]) -> str:
    """The page with these parts between their markers."""
    for name, text in parts.items():
        page = _replace(page, name, text)
    return page


def write_papers(rows: list[Row]) -> dict[str, str]:
    """By paper, a table of what it claims, figure by figure, and what was found."""
    parts = {}
    for paper, own in claims.PAPERS.items():
        lines = []
        for claim in own:
            finding = claims.judge(claim.target, rows)
            place = f"[{claim.target}](benchmarks.md#{claim.target})"
            lines.append([claim.figure, place, claim.says, _tell(finding) if finding else "not measured yet"])
        parts[paper] = _table(["where", "experiment", "what the paper says", "result"], lines)
    return parts


def _tell(finding: claims.Finding) -> str:
    holds, _, words = str(finding).partition(": ")
    return f"**{holds}**: {words}"


def _replace(page: str, name: str, text: str) -> str:
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    found = re.search(f"{re.escape(begin)}.*?{re.escape(end)}", page, re.DOTALL)
    if not found:
        raise SystemExit(f"the page has no part {begin} ... {end}")
    return f"{page[: found.start()]}{begin}\n\n{text}\n\n{end}{page[found.end() :]}"


def _machine(rows: list[Row]) -> str:
    """What the results were measured on; a paragraph for each machine if they differ."""
    machines: dict[str, list[Row]] = {}
    for row in rows:
        machines.setdefault(json.dumps(row["machine"], sort_keys=True), []).append(row)
    return "\n\n".join(_describe(group) for group in machines.values())


def _describe(rows: list[Row]) -> str:
    machine = rows[0]["machine"]
    dates, commits = sorted({row["date"] for row in rows}), sorted({f"`{row['commit']}`" for row in rows})
    packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
    return (
        f"Measured on {', '.join(dates)} at commit {', '.join(commits)} on {machine['cores']} cores of "
        f"{machine['processor']}, {machine['memory_gib']} GiB, {machine['system']}, "
        f"Python {machine['python']}; {packages}."
    )


def _summary(rows: list[Row], targets: list[Target]) -> str:
    """A line per target that has something to reach: the worst and the best case of each measure."""
    lines = []
    for target in (each for each in targets if each.reach):
        verdicts = [row for row in rows if row["kind"] == "verdict" and row["target"] == target.key]
        n_met = sum(row["met"] for row in verdicts)
        met = "yes" if n_met == len(verdicts) else f"{n_met} of {len(verdicts)}" if n_met else "**no**"
        measured, met = (_extremes(verdicts), met) if verdicts else ("not yet", "")
        lines.append([f"[{target.work}](#{target.key})", target.reach, measured, met])
    return _table(["work", "target", "measured", "met"], lines)


def _extremes(verdicts: list[Row]) -> str:
    by_measure: dict[str, list[Row]] = {}
    for row in verdicts:
        by_measure.setdefault(_plain(row["measure"]), []).append(row)
    words = []
    for measure, group in by_measure.items():
        low, high = _number(min(row["value"] for row in group)), _number(max(row["value"] for row in group))
        numbers = low if low == high else f"{low} to {high}"
        words.append(f"{numbers} {measure}")
    return "; ".join(words)


def _plain(measure: str) -> str:
    """The measure without the name of the contestant that happened to be best."""
    return re.sub(r" \([^)]*\)$", "", measure)


def _section(target: Target, rows: list[Row]) -> str:
    own = [row for row in rows if row["target"] == target.key]
    if not own:
        return "Not measured yet."
    parts = []
    finding = claims.judge(target.key, rows) if target.key in claims.CLAIMS else None
    if finding:
        parts.append(f"The paper: {claims.CLAIMS[target.key].says}. Here that {_tell(finding)}.")
    if target.key in OWN_PLOTS:
        parts.append(f"![{target.work.replace('`', '')}](benchmarks/{target.key}.svg)")
    if any("is_chosen" in row for row in own):
        parts.append(_matrix(own))
    verdicts = [row for row in own if row["kind"] != "time"]
    if verdicts:
        parts.append(_table(["case", "measure", "measured", "target", "met"], [_verdict_line(row) for row in verdicts]))
    times = [row for row in own if row["kind"] == "time"]
    if times:
        parts.append(_times_table(times))
    return "\n\n".join(parts)


def _verdict_line(row: Row) -> list[str]:
    if row["kind"] == "value":
        note = f" ({row['note']})" if row.get("note") else ""
        return [row["case"], row["measure"] + note, _number(row["value"]), "", ""]
    bound = f"{row['sense']} {_number(row['bound'])}"
    return [row["case"], row["measure"], _number(row["value"]), bound, "yes" if row["met"] else "**no**"]


def _times_table(times: list[Row]) -> str:
    has_build = any("build_seconds" in row for row in times)
    lines = []
    last = None
    for row in times:
        size = _size(row)
        case = f"{row['case']}{f' ({size})' if size else ''}" if row["case"] != last else ""
        last = row["case"]
        ratio = f"{_number(row['ratio'])} x" if "ratio" in row else ""
        built = [_seconds(row["build_seconds"]), f"{_number(row['bytes_a_query'])}"] if has_build else []
        lines.append([case, row["contestant"], _seconds(row["seconds"]), ratio, *built, row.get("note", "")])
    built = ["built in", "bytes a query"] if has_build else []
    return _table(["case", "contestant", "time", "of ours", *built, "note"], lines)


def _matrix(rows: list[Row]) -> str:
    """Time over the best time, a line a workload and a column an index; the planner's choice stands out."""
    times = [row for row in rows if row["kind"] == "time"]
    names = list(dict.fromkeys(row["index"] for row in times))
    lines = []
    for case in dict.fromkeys(row["case"] for row in times):
        own = {row["index"]: row for row in times if row["case"] == case}
        best = min(row["seconds"] for row in own.values())
        line = [case]
        for name in names:
            over = f"{own[name]['seconds'] / best:.2g}" if name in own else ""
            line.append(f"**{over}**" if name in own and own[name]["is_chosen"] else over)
        lines.append(line)
    return _table(["workload", *names], lines)


def _size(row: Row) -> str:
    parts = [f"{row['n_queries']:,} queries"] if "n_queries" in row else []
    parts += [f"{row['n_rows']:,} rows"] if "n_rows" in row else []
    parts += [f"{row['n_pairs']:,} {row.get('answers', 'pairs')}"] if "n_pairs" in row else []
    return ", ".join(parts)


def _seconds(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{_number(seconds * 1e6)} µs"
    return f"{_number(seconds * 1e3)} ms" if seconds < 1 else f"{_number(seconds)} s"


def _number(value: float) -> str:
    """Three digits."""
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _table(head: list[str], lines: Iterable[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [head, ["---"] * len(head), *lines])
