"""The report: tables and plots of the results, in docs/benchmarks.md, docs/benchmarks/ and docs/papers.md.

Each target has a page of its own, docs/benchmarks/KEY.md; benchmarks.md is the summary. Generated text is between
`<!-- begin NAME -->` and `<!-- end NAME -->`; text outside these markers is written by hand and kept. The parts are
`machine`, `summary`, `papers` and `beyond` in benchmarks.md, `results` in the page of a target, and one per paper in
papers.md.
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
from benchmarks.targets import EVERY_TARGET, EXTRAS, PAPERS, TARGETS, Target

DOCS = Path(__file__).parent.parent / "docs"
SUMMARY, PAPERS_PAGE, PAGES = DOCS / "benchmarks.md", DOCS / "papers.md", DOCS / "benchmarks"
Row = dict[str, Any]


def write_report(quick: bool) -> int:
    """Write all pages and plots. With `quick`, print the tables of the quick results instead."""
    rows = results.read(quick)
    if not rows:
        print("no results yet; run: python -m benchmarks run", file=sys.stderr)
        return 1
    pages = write_pages(rows)
    if quick:
        print("\n\n".join(pages.values()))
        return 0
    PAGES.mkdir(exist_ok=True)
    for path, text in pages.items():
        path.write_text(text)
    draw_plots(rows, PAGES)
    return 0


def write_pages(rows: list[Row]) -> dict[Path, str]:
    """The text of every page with these results in it."""
    pages = {
        SUMMARY: fill_page(SUMMARY.read_text(), write_summary(rows)),
        PAPERS_PAGE: fill_page(PAPERS_PAGE.read_text(), write_papers(rows)),
    }
    for target in EVERY_TARGET:
        path = PAGES / f"{target.key}.md"
        page = path.read_text() if path.exists() else _new_page(target)
        pages[path] = fill_page(page, {"results": _section(target, rows)})
    return pages


def write_summary(rows: list[Row]) -> dict[str, str]:
    """The generated parts of the summary page, by name."""
    return {
        "machine": _machines(rows, with_commits=False),
        "summary": _summary(rows, TARGETS),
        "papers": _summary(rows, PAPERS),
        "beyond": "\n".join(f"- [{target.work}](benchmarks/{target.key}.md)" for target in EXTRAS),
    }


def fill_page(page: str, parts: Mapping[str, str]) -> str:
    """The page with these parts between their markers."""
    for name, text in parts.items():
        page = _replace(page, name, text)
    return page


def _new_page(target: Target) -> str:
    return f"# {target.work[0].upper()}{target.work[1:]}\n\n<!-- begin results -->\n\n<!-- end results -->\n"


def write_papers(rows: list[Row]) -> dict[str, str]:
    """Per paper, a table of its claims, figure by figure, and what was measured."""
    parts = {}
    for paper, own in claims.PAPERS.items():
        lines = []
        for claim in own:
            finding = claims.judge(claim.target, rows)
            place = f"[{claim.target}](benchmarks/{claim.target}.md)"
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


def _machines(rows: list[Row], with_commits: bool) -> str:
    """When and on which machines the results were measured; a paragraph per machine."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(json.dumps(row["machine"], sort_keys=True), []).append(row)
    paragraphs = []
    for group in groups.values():
        commits = ", ".join(sorted({f"`{row['commit']}`" for row in group}))
        place = f" at commit {commits}" if with_commits else ""
        paragraphs.append(f"Measured {_dates(group)}{place} on {_describe(group[0]['machine'])}.")
    return "\n\n".join(paragraphs)


def _dates(rows: list[Row]) -> str:
    first, last = min(row["date"] for row in rows), max(row["date"] for row in rows)
    return f"on {first}" if first == last else f"from {first} to {last}"


def _describe(machine: dict[str, Any]) -> str:
    packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
    return (
        f"{machine['cores']} cores of {machine['processor']}, {machine['memory_gib']} GiB, {machine['system']}, "
        f"Python {machine['python']}; {packages}"
    )


def _summary(rows: list[Row], targets: list[Target]) -> str:
    """One line per target that has a bound: the worst and the best case of each measure."""
    lines = []
    for target in (each for each in targets if each.reach):
        verdicts = [row for row in rows if row["kind"] == "verdict" and row["target"] == target.key]
        n_met = sum(row["met"] for row in verdicts)
        met = "yes" if n_met == len(verdicts) else f"{n_met} of {len(verdicts)}" if n_met else "**no**"
        measured, met = (_extremes(verdicts), met) if verdicts else ("not yet", "")
        date = max((row["date"] for row in verdicts), default="")
        lines.append([f"[{target.work}](benchmarks/{target.key}.md)", target.reach, measured, met, date])
    return _table(["work", "target", "measured", "met", "date"], lines)


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
    """The measure without the name of the best contestant in brackets."""
    return re.sub(r" \([^)]*\)$", "", measure)


def _section(target: Target, rows: list[Row]) -> str:
    own = [row for row in rows if row["target"] == target.key]
    parts = [f"Target: {target.reach}."] if target.reach else []
    if not own:
        return "\n\n".join([*parts, "Not measured yet."])
    finding = claims.judge(target.key, rows) if target.key in claims.CLAIMS else None
    if finding:
        parts.append(f"The paper: {claims.CLAIMS[target.key].says}. Here that {_tell(finding)}.")
    if target.key in OWN_PLOTS:
        parts.append(f"![{target.work.replace('`', '')}]({target.key}.svg)")
    if any("is_chosen" in row for row in own):
        parts.append(_matrix(own))
    verdicts = [row for row in own if row["kind"] != "time"]
    if verdicts:
        parts.append(_table(["case", "measure", "measured", "target", "met"], [_verdict_line(row) for row in verdicts]))
    times = [row for row in own if row["kind"] == "time"]
    if times:
        parts.append(_times_table(times))
    return "\n\n".join([*parts, _machines(own, with_commits=True)])


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
    """Time over the best time, one line per workload and one column per index; the planner's choice is bold."""
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
