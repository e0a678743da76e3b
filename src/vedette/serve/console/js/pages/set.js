/** A set: its queries by pages, with search and filters; and the form to add or change one. */

import { get, remove, setPath } from "../api.js";
import { confirm } from "../dialog.js";
import { h, put } from "../element.js";
import { choice, field, textInput } from "../form.js";
import { plain } from "../format.js";
import { notify } from "../notice.js";
import { openQueryForm } from "../query-form.js";
import { hrefOf, reload } from "../router.js";
import { may } from "../session.js";
import { setHeader } from "../set-header.js";
import { PagedTable } from "../table.js";

const PAGE = 50;
const WAIT = 200; // milliseconds without a key until a search begins
const STATES = [["active", "Active"], ["parked", "Parked: invalid since the schema changed"], ["removed", "Removed"], ["expired", "Expired"]];

/** @param {import("../router.js").Place} place */
export async function show({ main, params, query, signal, session }) {
  const set = await get(setPath(params.set), {}, signal);
  const search = textInput({ type: "search", placeholder: "price <" });
  const prefix = textInput({ type: "search" });
  const metadata = textInput({ type: "search", placeholder: "owner: ann" });
  const state = choice(STATES, query.state ?? "active");
  const table = new PagedTable({
    caption: "Queries",
    columns: columnsOf(set, session),
    empty: "No query.",
    read: async (after) => {
      const page = await get(setPath(set.name, "queries"), {
        search: search.value, prefix: prefix.value, metadata: readFilter(metadata.value), state: state.value, after, limit: PAGE,
      }, signal);
      return { records: page.queries, next: page.next };
    },
  });
  let timer = 0;
  const filter = h("form", { class: "fields tight", role: "search", "aria-label": "Queries", on: {
    submit: (event) => { event.preventDefault(); table.first(); },
    input: () => { clearTimeout(timer); timer = setTimeout(() => table.first(), WAIT); },
  } }, field("Text contains", search), field("Id begins with", prefix), field("Metadata", metadata), field("State", state));
  await table.first();
  put(main, setHeader(set, "Queries", session),
    h("section", { class: "card", "aria-label": "Queries" },
      h("div", { class: "head" }, h("h2", {}, "Queries"),
        may(session, "write") && h("button", { type: "button", class: "main", on: { click: () => openQueryForm(set, null, reload) } }, "New query")),
      filter, table.element));
}

function columnsOf(set, session) {
  const shown = (each) => each.where ?? ["low", "high", "x_low", "x_high", "y_low", "y_high", "z_low", "z_high"]
    .filter((name) => each[name] !== null && each[name] !== undefined).map((name) => `${name} ${each[name]}`).join(", ");
  const columns = [
    { label: "Id", cell: (each) => h("a", { href: hrefOf(["sets", set.name, "queries", String(each.id)]) }, String(each.id)) },
    { label: set.kind.endsWith("join") && set.kind !== "window join" ? "Ranges" : "Condition", class: "text", cell: shown },
    { label: "Metadata", cell: (each) => Object.entries(each.metadata).map(([name, value]) => h("span", { class: "mark" }, `${name}: ${plain(value)}`)) },
  ];
  if (may(session, "write")) columns.push({ label: "Actions", cell: (each) => each.state === "active" && h("div", { class: "row" }, actions(set, each)) });
  return columns;
}

/** Buttons that change a query. */
export function actions(set, query) {
  return [
    h("button", { type: "button", "aria-label": `Edit ${query.id}`, on: { click: () => openQueryForm(set, query, reload) } }, "Edit"),
    h("button", { type: "button", class: "danger", "aria-label": `Remove ${query.id}`, on: { click: () => confirm({
      title: `Remove ${query.id}?`, text: "It stays in the history, from which it can be restored.", label: "Remove query",
      action: async () => {
        await remove(setPath(set.name, "queries", query.id));
        notify(`${query.id} is removed.`);
        reload();
      },
    }) } }, "Remove"),
  ];
}

/** A filter such as `owner: ann` as the JSON that the service reads. */
function readFilter(text) {
  if (!text.trim()) return "";
  if (text.trim().startsWith("{")) return text;
  return JSON.stringify(Object.fromEntries(text.split(",").filter((each) => each.includes(":")).map((each) => {
    const [name, ...rest] = each.split(":");
    return [name.trim(), rest.join(":").trim()];
  })));
}
