/** A query: what it is, what it reports as it happens, and its history with restore. */

import { get, post, setPath } from "../api.js";
import { diffLine } from "../diff.js";
import { h, put } from "../element.js";
import { EventList } from "../event-list.js";
import { moment, plain } from "../format.js";
import { notify } from "../notice.js";
import { hrefOf, reload } from "../router.js";
import { may } from "../session.js";
import { setHeader } from "../set-header.js";
import { actions } from "./set.js";

const HIDDEN = new Set(["id", "where", "metadata", "state", "added", "removed", "created_at", "ended_at", "added_by", "removed_by"]);

/** @param {import("../router.js").Place} place */
export async function show({ main, params, signal, session }) {
  const [set, history] = await Promise.all([get(setPath(params.set), {}, signal), get(setPath(params.set, "queries", params.id, "history"), {}, signal)]);
  const last = history.at(-1);
  const isActive = last.state === "active";
  const facts = Object.entries(last).filter(([name, value]) => !HIDDEN.has(name) && value !== null);
  put(main, setHeader(set, "", session),
    h("section", { class: "card", "aria-label": "Query" },
      h("div", { class: "head" }, h("h2", {}, String(last.id), " ", h("span", { class: `mark ${isActive ? "good" : "warn"}` }, last.state)),
        h("div", { class: "row" },
          last.where && h("a", { class: "button", href: hrefOf(["why"], { set: set.name, query: last.id }) }, "Ask why"),
          last.where && h("a", { class: "button", href: hrefOf(["backtest"], { set: set.name, query: last.id }) }, "Backtest"),
          isActive && may(session, "write") && actions(set, last))),
      last.where && h("pre", {}, last.where),
      h("dl", { class: "facts" }, facts.map(([name, value]) => [h("dt", {}, name.replaceAll("_", " ")), h("dd", {}, name === "expires_at" ? moment(value) : plain(value))]),
        Object.entries(last.metadata).map(([name, value]) => [h("dt", {}, name), h("dd", {}, plain(value))]))),
    set.kind === "border" && (await events(set, last.id, signal)),
    h("section", { class: "card", "aria-label": "History" }, h("h2", {}, "History"), revisions(set, history, session)));
}

async function events(set, id, signal) {
  const { sets } = await get("/v1/status", {}, signal);
  if (!sets.find((each) => each.name === set.name)?.monitored) return null;
  const list = new EventList();
  list.follow(set.name, signal, { query: String(id), after: 0 });
  return h("section", { class: "card", "aria-label": "Events" }, h("h2", {}, "Events"), list.element);
}

function revisions(set, history, session) {
  return h("ol", { class: "revisions" }, history.toReversed().map((each, place, all) => {
    const before = all[place + 1] ?? null;
    const isPast = place > 0 || each.state !== "active";
    return h("li", { class: "stack" },
      h("div", { class: "head" },
        h("span", {}, `Version ${each.added}`, each.removed ? ` to ${each.removed - 1}` : "", h("span", { class: "muted" }, ` · ${moment(each.created_at)}${each.added_by ? ` · ${each.added_by}` : ""}`),
          each.state === "removed" && h("span", { class: "muted" }, ` · removed ${moment(each.ended_at)}${each.removed_by ? ` by ${each.removed_by}` : ""}`)),
        isPast && may(session, "write") && h("button", { type: "button", on: { click: () => restore(set, each) } }, `Restore version ${each.added}`)),
      diffLine(before, each));
  }));
}

async function restore(set, revision) {
  try {
    const { version } = await post(setPath(set.name, "queries", revision.id, "restore"), { version: revision.added });
    notify(`Restored as version ${version}.`);
    reload();
  } catch (error) {
    notify(error.message, "bad");
  }
}
