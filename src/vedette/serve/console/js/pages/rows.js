/** Rows and events of a set: start a monitor, send rows by hand, and see what they cause. */

import { get, getIfAny, post, put as putJson, remove, setPath } from "../api.js";
import { confirm } from "../dialog.js";
import { h, put } from "../element.js";
import { EventList } from "../event-list.js";
import { choice, field, textInput, tick } from "../form.js";
import { plain, plural } from "../format.js";
import { readRows } from "../json-rows.js";
import { messageLine, notify } from "../notice.js";
import { hrefOf, reload } from "../router.js";
import { rowForm } from "../row-form.js";
import { fieldsOf } from "../schema.js";
import { may } from "../session.js";
import { setHeader } from "../set-header.js";

/** @param {import("../router.js").Place} place */
export async function show({ main, params, signal, session }) {
  const set = await get(setPath(params.set), {}, signal);
  const status = await get("/v1/status", {}, signal);
  const state = status.sets.find((each) => each.name === set.name);
  const monitor = state?.monitored ? await getIfAny(setPath(set.name, "monitor"), {}, signal) : null;
  const parts = [];
  if (set.kind === "border" && !monitor) parts.push(may(session, "admin") ? newMonitor(set) : h("p", { class: "notice warn" }, "The set has no monitor yet. An admin can start one."));
  if (set.kind === "match" || (set.kind === "border" && monitor)) parts.push(sender(set, monitor, session));
  if (monitor) {
    const events = new EventList();
    events.follow(set.name, signal, { after: Math.max(0, (state.sequence ?? 0) - 50) });
    parts.push(h("section", { class: "card", "aria-label": "Events" }, h("h2", {}, "Events"), events.element), options(set, monitor, session));
  }
  if (set.kind.includes("join")) {
    const moving = set.kind === "moving join" && monitor && h("a", { href: hrefOf(["moving"], { set: set.name }) }, "See where its objects go.");
    parts.unshift(h("p", { class: "notice" }, `Rows of a ${set.kind} are sent by programs or pipelines. `, moving));
  }
  put(main, setHeader(set, "Rows and events", session), parts);
}

function newMonitor(set) {
  const fields = fieldsOf(set.schema);
  const names = fields.map((each) => each.name);
  const key = choice(names, (fields.find((each) => /string|int/i.test(each.type)) ?? fields[0])?.name);
  const time = choice(names, fields.find((each) => /timestamp/i.test(each.type))?.name);
  const columns = fields.map((each) => [each.name, tick(each.name)]);
  const dwell = textInput({});
  const cooldown = textInput({});
  const line = messageLine();
  return h("form", { class: "card", on: { submit: async (event) => {
    event.preventDefault();
    try {
      await putJson(setPath(set.name, "monitor"), {
        key: key.value, time: time.value, columns: columns.filter(([, each]) => each.input.checked).map(([name]) => name),
        dwell: dwell.value || null, cooldown: cooldown.value || null,
      });
      notify("The monitor is started.");
      reload();
    } catch (error) {
      line.tell(error.message);
    }
  } } }, h("h2", {}, "Start monitoring"), h("p", { class: "muted" }, "The service keeps the last row of each key, and reports which queries a key enters and leaves."),
  h("div", { class: "fields" }, field("Key", key, { hint: "The field that says whose row it is" }), field("Time", time, { hint: "A timestamp" }),
    field("Dwell", dwell, { hint: "Time inside until an enter: 5 minutes" }), field("Cooldown", cooldown, { hint: "Between two enters of a key: 1 hour" })),
  h("fieldset", {}, h("legend", {}, "Events carry"), h("div", { class: "row" }, columns.map(([, each]) => each.element))),
  line, h("div", { class: "row" }, h("button", { class: "main", type: "submit" }, "Start monitoring")));
}

function sender(set, monitor, session) {
  const form = rowForm(set.schema);
  const pasted = h("textarea", { rows: 6, spellcheck: "false", placeholder: "One JSON object per line, or a list" });
  const said = h("div", { class: "stack", role: "status" });
  const isMonitored = Boolean(monitor) && may(session, "write") && !session.owner;

  const send = async (rows, how) => {
    try {
      put(said, how === "rows" ? accepted(set, await post(setPath(set.name, "rows"), rows)) : matched(set, rows, await post(setPath(set.name, "match"), rows)));
    } catch (error) {
      put(said, h("p", { class: "notice bad" }, error.message));
    }
  };
  const buttons = (read) => h("div", { class: "row" },
    isMonitored && h("button", { type: "button", class: "main", on: { click: () => attempt(said, () => send(read(), "rows")) } }, "Send"),
    h("button", { type: "button", on: { click: () => attempt(said, () => send(read(), "match")) } }, "Which queries match?"));
  return h("section", { class: "card", "aria-label": "Send rows" }, h("h2", {}, "Send rows"), form.element, buttons(() => [form.read()]),
    h("details", {}, h("summary", {}, "Paste many rows"), h("div", { class: "stack" }, field("Rows as JSON", pasted), buttons(() => readRows(pasted.value)))), said);
}

function attempt(said, action) {
  try {
    action();
  } catch (error) {
    put(said, h("p", { class: "notice bad" }, error.message));
  }
}

function accepted(set, answer) {
  return [h("p", { class: "notice good" }, `${plural(answer.rows, "row")} accepted, ${plural(answer.events.length, "event")}.`),
    h("ul", {}, answer.events.slice(0, 20).map((each) => h("li", {}, h("span", { class: `mark ${each.event}` }, each.event), ` ${each.key} `,
      h("a", { href: hrefOf(["sets", set.name, "queries", String(each.query)]) }, String(each.query)))))];
}

function matched(set, rows, answer) {
  return h("ul", {}, answer.matches.slice(0, 20).map((ids, place) => h("li", {}, h("code", {}, plain(rows[place])), ": ",
    ids.length ? ids.slice(0, 50).map((id, rank) => [rank ? ", " : "", h("a", { href: hrefOf(["why"], { set: set.name, query: id, row: plain(rows[place]) }), "aria-label": `Why does it match ${id}?` }, String(id))]) : "no query")));
}

function options(set, monitor, session) {
  const shown = Object.entries(monitor).filter(([, value]) => value !== null && value !== false && !(Array.isArray(value) && !value.length));
  return h("section", { class: "card", "aria-label": "Monitor" }, h("div", { class: "head" }, h("h2", {}, "Monitor"),
    may(session, "admin") && h("button", { type: "button", class: "danger", on: { click: () => confirm({
      title: "Stop monitoring?", text: "The state of all keys and the recent events are deleted.", label: "Stop monitoring",
      action: async () => {
        await remove(setPath(set.name, "monitor"));
        reload();
      },
    }) } }, "Stop")),
  h("dl", { class: "facts" }, shown.map(([name, value]) => [h("dt", {}, name.replaceAll("_", " ")), h("dd", {}, plain(value))])));
}
