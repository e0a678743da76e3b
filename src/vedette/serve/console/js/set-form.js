/** The form of a new set, and of changes to one. */

import { patch, post, setPath } from "./api.js";
import { openForm } from "./dialog.js";
import { h } from "./element.js";
import { choice, field, textInput, tick } from "./form.js";
import { notify } from "./notice.js";
import { go } from "./router.js";

const KINDS = [
  ["border", "border: report when a key enters or leaves a query"],
  ["match", "match: which queries a row matches"],
  ["window join", "window join: rows of two streams within a time"],
  ["band join", "band join: values within a band"],
  ["moving join", "moving join: objects that will meet"],
];

export function openNewSet() {
  const name = textInput({ required: true });
  const kind = choice(KINDS, "border");
  const schema = h("textarea", { rows: 3, spellcheck: "false", placeholder: "symbol string, price double, ts timestamp" });
  const zone = textInput({ value: "UTC", required: true });
  openForm({
    title: "New set",
    body: [field("Name", name), field("Kind", kind),
      field("Fields", schema, { hint: "Names and types of Spark SQL. Of a window join, one line per stream: trades: symbol string, price double" }),
      field("Time zone", zone, { hint: "Of dates, and of timestamps without a zone" })],
    saveLabel: "Create set",
    save: async () => {
      const made = await post("/v1/sets", { name: name.value, kind: kind.value, schema: readSchema(schema.value, kind.value), time_zone: zone.value });
      notify(`Set ${made.name} is created.`);
      go(["sets", made.name]);
    },
  });
}

/** @param {any} set its record @param {() => void} done */
export function openAlterSet(set, done) {
  const schema = h("textarea", { rows: 5, spellcheck: "false" });
  schema.value = writeSchema(set.schema);
  const zone = textInput({ value: set.time_zone });
  const force = tick("Keep queries that become invalid as parked");
  openForm({
    title: `Change ${set.name}`,
    body: [field("Fields", schema), field("Time zone", zone), force.element,
      set.kind === "border" && h("p", { class: "muted small" }, "Its monitor must be started again afterwards.")],
    saveLabel: "Save",
    save: async () => {
      const given = { force: force.input.checked };
      if (schema.value !== writeSchema(set.schema)) given.schema = readSchema(schema.value, set.kind);
      if (zone.value !== set.time_zone) given.time_zone = zone.value;
      const { version } = await patch(setPath(set.name), given);
      notify(`The set is at version ${version}.`);
      done();
    },
  });
}

/** The schema as the service reads it: a text, or of streams, one text by name. */
function readSchema(text, kind) {
  const trimmed = text.trim();
  if (!trimmed) return undefined;
  if (kind !== "window join") return trimmed.replace(/\s*\n\s*/g, " ");
  return Object.fromEntries(trimmed.split("\n").filter((line) => line.trim()).map((line) => {
    const [name, ...rest] = line.split(":");
    return [name.trim(), rest.join(":").trim()];
  }));
}

function writeSchema(schema) {
  if (!schema) return "";
  return typeof schema === "string" ? schema : Object.entries(schema).map(([name, fields]) => `${name}: ${fields}`).join("\n");
}
