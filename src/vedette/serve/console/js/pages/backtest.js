/** Backtest: what a condition would have done over rows that a person has. */

import { get, request, setPath } from "../api.js";
import { barChart } from "../chart.js";
import { Editor } from "../editor.js";
import { h, put } from "../element.js";
import { choice, field, textInput } from "../form.js";
import { count } from "../format.js";
import { messageLine } from "../notice.js";
import { openQueryForm } from "../query-form.js";
import { go } from "../router.js";
import { fieldsOf } from "../schema.js";
import { may } from "../session.js";

const TYPES = [[".csv", "text/csv"], [".arrow", "application/vnd.apache.arrow.stream"], [".jsonl", "application/x-ndjson"], [".ndjson", "application/x-ndjson"], [".json", "application/json"]];

/** @param {import("../router.js").Place} place */
export async function show({ main, query, signal, session }) {
  const sets = (await get("/v1/sets", {}, signal)).filter((each) => ["match", "border"].includes(each.kind));
  if (!sets.length) {
    put(main, h("h1", {}, "Backtest"), h("p", { class: "empty" }, "A backtest needs a set of the kind match or border."));
    return;
  }
  const set = choice(sets.map((each) => each.name), query.set);
  const body = h("div", { class: "stack" });
  const draw = async () => {
    const record = sets.find((each) => each.name === set.value);
    const known = query.query && record.name === query.set ? await get(setPath(record.name, "queries", query.query), {}, signal) : null;
    put(body, form(record, known?.where ?? "", session));
  };
  set.addEventListener("change", draw);
  await draw();
  put(main, h("h1", {}, "Backtest"), h("p", { class: "muted" }, "What a condition would have done over rows of the past. Nothing is changed."), h("div", { class: "card" }, field("Set", set), body));
}

function form(set, text, session) {
  const fields = fieldsOf(set.schema);
  const names = fields.map((each) => each.name);
  const editor = new Editor({ set, value: text });
  const time = choice(names, fields.find((each) => /timestamp/i.test(each.type))?.name);
  const key = choice([["", "None"], ...names.map((each) => [each, each])], fields.find((each) => /string/i.test(each.type))?.name ?? "");
  const options = ["cooldown", "dwell", "expire_after"].map((name) => [name, textInput({})]);
  const file = h("input", { type: "file", accept: TYPES.map(([end]) => end).join(",") });
  const pasted = h("textarea", { rows: 5, spellcheck: "false", placeholder: '{"symbol": "IBM", "price": 39.5, "ts": "2026-03-02T14:00:00Z"}' });
  const sources = [["file", "A file"], ["pasted", "Pasted"], ...(set.kind === "border" && !session.owner ? [["recent", "The last rows that the service has accepted"]] : [])];
  const source = choice(sources, "file");
  const places = { file: field("File", file, { hint: "CSV, JSON, JSON lines or an Arrow stream, in time order" }), pasted: field("Rows as JSON lines", pasted), recent: h("p", { class: "muted small" }, "Those since its start, up to 16 MiB. The set needs a monitor.") };
  const given = h("div", {}, places.file);
  source.addEventListener("change", () => put(given, places[source.value]));
  const line = messageLine();
  const result = h("div", { class: "stack", "aria-live": "polite" });

  async function run(event) {
    event.preventDefault();
    line.tell("");
    try {
      const { type, data } = source.value === "recent" ? { type: "application/json" } : rows(source.value, file, pasted);
      const asked = Object.fromEntries(options.map(([name, input]) => [name, input.value]));
      const found = await request("POST", setPath(set.name, "backtest"), {
        query: { where: editor.value, time: time.value, key: key.value, recent: source.value === "recent" || undefined, ...asked }, headers: { "Content-Type": type }, body: data,
      });
      put(result, report(found), may(session, "write") && h("div", { class: "row" }, h("button", { type: "button", class: "main", on: {
        click: () => openQueryForm(set, { where: editor.value, ...(set.kind === "border" ? asked : {}) }, (id) => go(["sets", set.name, "queries", String(id)])),
      } }, "Add it")));
    } catch (error) {
      line.tell(error.message);
      put(result);
    }
  }

  return h("form", { class: "stack", on: { submit: run } }, editor.element,
    h("div", { class: "fields" }, field("Rows", source), field("Time", time), field("Key", key)), given,
    h("details", {}, h("summary", {}, "Options of reports"),
      h("div", { class: "fields" }, options.map(([name, input]) => field(name[0].toUpperCase() + name.slice(1).replace("_", " "), input)))),
    line, h("div", { class: "row" }, h("button", { class: "main", type: "submit" }, "Run backtest")), result);
}

function rows(source, file, pasted) {
  const [chosen, text] = [file.files[0], pasted.value.trim()];
  if (source === "file" && !chosen) throw new Error("Choose a file with rows.");
  if (source === "pasted" && !text) throw new Error("Paste some rows.");
  if (source === "file") return { type: TYPES.find(([end]) => chosen.name.toLowerCase().endsWith(end))?.[1] ?? "application/x-ndjson", data: chosen };
  return { type: text.startsWith("[") ? "application/json" : "application/x-ndjson", data: text };
}

function report(found) {
  const tiles = [["Rows", found.rows], ["Rows that match", found.matched_rows], ["Events", found.events], ["Notifications", found.notifications], ["Keys", found.keys], ["Late rows", found.late]];
  return [
    h("dl", { class: "tiles" }, tiles.filter(([, value]) => value !== undefined && value !== null).map(([label, value]) => h("div", { class: "tile" }, h("dt", {}, label), h("dd", {}, count(value))))),
    found.days.length > 0 && barChart({
      title: "By day", labels: found.days.map((each) => each.day),
      series: [{ name: "rows that match", values: found.days.map((each) => each.matched_rows) }, { name: "notifications", values: found.days.map((each) => each.notifications ?? 0) }],
    }),
  ];
}
