/** Home: the sets and what happens in them, the last events, and what needs attention. */

import { get } from "../api.js";
import { attention } from "../attention.js";
import { h, put } from "../element.js";
import { EventList } from "../event-list.js";
import { count, rate } from "../format.js";
import { hrefOf } from "../router.js";
import { may } from "../session.js";
import { openNewSet } from "../set-form.js";
import { table } from "../table.js";

const SECONDS = 2;
const RECENT = 20; // events of each set that are shown at first
const MOST_FOLLOWED = 12; // sets whose events are shown here

/** @param {import("../router.js").Place} place */
export async function show({ main, signal, session }) {
  const tiles = h("dl", { class: "tiles" });
  const needs = h("div", { class: "stack" });
  const sets = h("div", {});
  const pipelines = h("section", { class: "card", "aria-label": "Pipelines" });
  const events = new EventList({ withSet: true });
  const followed = new Set();
  let before = null;

  async function refresh() {
    const status = await get("/v1/status", {}, signal);
    const running = session.owner ? [] : await get("/v1/pipelines", {}, signal);
    const now = performance.now();
    const rates = ratesOf(status, before && { ...before, seconds: (now - before.at) / 1000 });
    before = { status, at: now };
    drawTiles(tiles, status, rates);
    drawNeeds(needs, attention(status, running));
    put(sets, setTable(status.sets, rates));
    pipelines.hidden = !running.length;
    put(pipelines, h("h2", {}, "Pipelines"), pipelineTable(running));
    for (const each of status.sets.filter((each) => each.monitored && !followed.has(each.name)).slice(0, MOST_FOLLOWED - followed.size)) {
      followed.add(each.name);
      events.follow(each.name, signal, { after: Math.max(0, (each.sequence ?? 0) - RECENT) });
    }
  }

  await refresh();
  const refreshAgain = () => refresh().catch((error) => signal.aborted || drawNeeds(needs, [{ kind: "bad", text: error.message }]));
  const first = setTimeout(refreshAgain, 700); // two answers give rates
  const timer = setInterval(() => document.hidden || refreshAgain(), 1000 * SECONDS);
  signal.addEventListener("abort", () => {
    clearTimeout(first);
    clearInterval(timer);
  });
  put(main,
    h("div", { class: "head" }, h("h1", {}, "Home"),
      may(session, "admin") && h("button", { class: "main", type: "button", on: { click: openNewSet } }, "New set")),
    tiles, needs,
    h("section", { class: "card", "aria-labelledby": "sets" }, h("h2", { id: "sets" }, "Sets"), sets),
    pipelines,
    h("section", { class: "card", "aria-labelledby": "events" }, h("h2", { id: "events" }, "Last events"), events.element));
}

/** Rows and events per second by set, since the answer before. */
function ratesOf(status, before) {
  const old = new Map((before?.status.sets ?? []).map((each) => [each.name, each]));
  return new Map(status.sets.map((each) => {
    const last = old.get(each.name);
    const since = (name) => (last && each[name] !== null && last[name] !== null ? Math.max(0, each[name] - last[name]) / before.seconds : null);
    return [each.name, { rows: since("rows"), events: since("events") }];
  }));
}

function drawTiles(tiles, status, rates) {
  const total = (name) => status.sets.reduce((sum, each) => sum + (each[name] ?? 0), 0);
  const perSecond = (name) => ([...rates.values()].some((each) => each[name] !== null) ? [...rates.values()].reduce((sum, each) => sum + (each[name] ?? 0), 0) : null);
  const shown = [["Sets", count(status.sets.length)], ["Queries", count(total("queries"))], ["Rows", rate(perSecond("rows"))],
    ["Events", rate(perSecond("events"))], ["Keys", count(total("keys"))], ["Clients that follow", count(status.streams)]];
  put(tiles, shown.map(([label, value]) => h("div", { class: "tile" }, h("dt", {}, label), h("dd", {}, value))));
}

function drawNeeds(needs, found) {
  put(needs, found.map((each) => h("p", { class: `notice ${each.kind}` }, each.text, " ", each.href && h("a", { href: each.href }, each.label))));
}

function setTable(sets, rates) {
  const columns = [
    { label: "Set", cell: (each) => h("a", { href: hrefOf(["sets", each.name]) }, each.name) },
    { label: "Kind", cell: (each) => h("span", {}, each.kind, " ", each.monitored && h("span", { class: "mark accent" }, "monitored")) },
    { label: "Queries", class: "number", cell: (each) => count(each.queries) },
    { label: "Version", class: "number", cell: (each) => count(each.version) },
    { label: "Keys", class: "number", cell: (each) => count(each.keys) },
    { label: "Rows", class: "number", cell: (each) => rate(rates.get(each.name).rows) },
    { label: "Events", class: "number", cell: (each) => rate(rates.get(each.name).events) },
  ];
  return table("Sets", columns, sets, "There is no set yet. A set has the queries that watch one kind of rows.");
}

/** The sum over sinks; null if none knows it. */
function sum(sinks, name) {
  const known = sinks.map((each) => each[name]).filter((value) => value !== null);
  return known.length ? known.reduce((total, value) => total + value, 0) : null;
}

function pipelineTable(running) {
  const columns = [
    { label: "Pipeline", cell: (each) => each.name },
    { label: "State", cell: (each) => h("span", { class: `mark ${each.state === "running" ? "good" : "warn"}` }, each.state) },
    { label: "Set", cell: (each) => each.set && h("a", { href: hrefOf(["sets", each.set]) }, each.set) },
    { label: "Version", class: "number", cell: (each) => count(each.sinks[0]?.version) },
    { label: "Rows", class: "number", cell: (each) => rate(sum(each.sinks, "rows_per_second")) },
    { label: "Lag, rows", class: "number", cell: (each) => count(sum(each.sinks, "lag_rows")) },
    { label: "Last error", cell: (each) => each.error ?? "" },
  ];
  return table("Pipelines", columns, running);
}
