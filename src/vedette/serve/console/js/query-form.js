/** The form of a query: to add one, or to change one. Which fields it has depends on the kind of its set. */

import { patch, post, setPath } from "./api.js";
import { openForm } from "./dialog.js";
import { Editor } from "./editor.js";
import { h } from "./element.js";
import { choice, field, textInput } from "./form.js";
import { notify } from "./notice.js";

const NUMBERS = { "band join": ["low", "high"], "moving join": ["x_low", "x_high", "y_low", "y_high", "z_low", "z_high"] };
const OPTIONS = [
  ["dwell", "Dwell", "Enters are reported after this time inside: 5 minutes"],
  ["cooldown", "Cooldown", "At most one enter of a key in this time: 1 hour"],
  ["margin", "Margin", "Distance beyond the boundary until an exit"],
  ["expire_after", "Expire after", "A key without rows for this time leaves: 10 minutes"],
];

/**
 * @param {any} set its record
 * @param {any} query its record; null for a new one, or a record without id, as from a backtest
 * @param {(id: any) => void} done
 */
export function openQueryForm(set, query, done) {
  const isNew = query?.id === undefined;
  const parts = makeParts(set, query ?? {});
  const id = textInput({ required: true });
  openForm({
    title: isNew ? `New query of ${set.name}` : `Change ${query.id}`,
    body: [isNew && field("Id", id, { hint: set.ids === "integer" ? "A whole number" : "A name that no other query of the set has" }), parts.elements],
    saveLabel: isNew ? "Add query" : "Save",
    save: async () => {
      const body = parts.read(isNew);
      const own = isNew ? (set.ids === "integer" ? Number(id.value) : id.value) : query.id;
      const { version, warnings = [] } = isNew ? await post(setPath(set.name, "queries"), { id: own, ...body }) : await patch(setPath(set.name, "queries", own), body);
      notify(`${own} is ${isNew ? "added" : "changed"}: version ${version}.`);
      warnings.forEach((text) => notify(text, "warn"));
      done(own);
    },
  });
}

function makeParts(set, query) {
  const elements = [];
  const readers = [];
  const add = (element, read) => { elements.push(element); readers.push(read); };
  if (set.kind in NUMBERS) addNumbers(set, query, add);
  else addCondition(set, query, add);
  if (set.kind === "window join") {
    const within = textInput({ value: textOf(query.within) });
    add(field("Within", within, { hint: "The time between the rows of a pair: 5 minutes" }), () => ({ within: within.value || undefined }));
  }
  if (set.kind === "border") addOptions(query, add);
  addMetadata(query, add);
  return {
    elements,
    read: (isNew) => Object.fromEntries(Object.entries(Object.assign({}, ...readers.map((read) => read(isNew)))).filter(([, value]) => value !== undefined)),
  };
}

function addCondition(set, query, add) {
  const editor = new Editor({ set, value: query.where ?? "" });
  add(editor.element, () => ({ where: editor.value }));
}

function addNumbers(set, query, add) {
  const inputs = NUMBERS[set.kind].map((name) => [name, h("input", { type: "number", step: "any", value: query[name] ?? "" })]);
  add(h("div", { class: "fields" }, inputs.map(([name, input]) => field(name.replace("_", " "), input))),
    () => Object.fromEntries(inputs.filter(([, input]) => input.value !== "").map(([name, input]) => [name, Number(input.value)])));
}

function addOptions(query, add) {
  const inputs = OPTIONS.map(([name, label, hint]) => [name, label, textInput({ value: textOf(query[name]) }), hint]);
  const once = choice([["", "Each time"], ["key", "Once per key"], ["query", "Once, then remove the query"]], query.once === true ? "key" : query.once || "");
  add(h("details", { open: OPTIONS.some(([name]) => query[name] !== null && query[name] !== undefined) || Boolean(query.once) }, h("summary", {}, "Options of reports"),
    h("div", { class: "fields" }, inputs.map(([, label, input, hint]) => field(label, input, { hint })), field("Report enters", once))),
  () => ({
    ...Object.fromEntries(inputs.map(([name, , input]) => [name, numberOrText(input.value)])),
    once: once.value === "" ? (query.once ? false : undefined) : once.value === "key" ? true : "query",
  }));
}

function addMetadata(query, add) {
  const lines = h("textarea", { rows: 2, spellcheck: "false", placeholder: "owner: ann" });
  lines.value = Object.entries(query.metadata ?? {}).map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`).join("\n");
  const before = lines.value;
  add(field("Metadata", lines, { hint: "One per line, name: value. Reports carry it; owner says whose the query is." }),
    (isNew) => ({ metadata: lines.value === before && !(isNew && before) ? undefined : readMetadata(lines.value) }));
  const ttl = textInput({});
  add(field("Ends after", ttl, { hint: query.expires_at ? `Ends now at ${query.expires_at}; empty leaves that` : "Such as 30 days; empty: never" }), () => ({ ttl: ttl.value || undefined }));
}

function readMetadata(text) {
  return Object.fromEntries(text.split("\n").filter((line) => line.trim()).map((line) => {
    const place = line.indexOf(":");
    if (place < 1) throw new Error(`Metadata has lines such as owner: ann; got ${line}`);
    return [line.slice(0, place).trim(), readValue(line.slice(place + 1).trim())];
  }));
}

function readValue(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

const textOf = (value) => (value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value));
const numberOrText = (text) => (text.trim() === "" ? undefined : Number.isNaN(Number(text)) ? text.trim() : Number(text));
