/** A form with one input per field of a set's rows; of a set over several streams, per field of each stream. */

import { h } from "./element.js";
import { field } from "./form.js";
import { fieldsOf } from "./schema.js";

const NUMBER = /^(tinyint|smallint|int|integer|bigint|long|float|double|real)\b/i;

/** @param {any} schema of one stream, or of several by name @param {Record<string, any>} [row] values to begin with */
export function rowForm(schema, row = {}) {
  const inputs = fieldsOf(schema).map(({ name, type, path }) => ({ name, type, path, input: inputFor(type, path.reduce((own, part) => own?.[part], row)) }));
  return {
    element: h("div", { class: "fields" }, inputs.map(({ name, type, input }) => field(name, input, { hint: type }))),
    /** The row, or an object with a row per stream; empty inputs are null. */
    read: () => readAll(inputs),
    inputs,
  };
}

function readAll(inputs) {
  const read = {};
  for (const { type, path: [first, second], input } of inputs) {
    const value = readValue(type, input.value);
    if (second === undefined) read[first] = value;
    else (read[first] ??= {})[second] = value;
  }
  return read;
}

function inputFor(type, value) {
  const isTime = /^timestamp/i.test(type);
  const first = value ?? (isTime ? new Date().toISOString().slice(0, 19) + "Z" : "");
  return h("input", { type: NUMBER.test(type) ? "number" : "text", step: "any", autocomplete: "off", spellcheck: "false", value: typeof first === "object" ? JSON.stringify(first) : String(first) });
}

function readValue(type, text) {
  if (text === "") return null;
  if (NUMBER.test(type)) return Number(text);
  if (/^boolean/i.test(type)) return text.toLowerCase() === "true";
  if (/^(array|map|struct)/i.test(type)) return JSON.parse(text);
  return text;
}
