/** A form with one input per field of a set's rows. */

import { h } from "./element.js";
import { field } from "./form.js";
import { fieldsOf } from "./schema.js";

const NUMBER = /^(tinyint|smallint|int|integer|bigint|long|float|double|real)\b/i;

/** @param {any} schema @param {Record<string, any>} [row] values to begin with */
export function rowForm(schema, row = {}) {
  const inputs = fieldsOf(schema).map(({ name, type }) => ({ name, type, input: inputFor(type, row[name]) }));
  return {
    element: h("div", { class: "fields" }, inputs.map(({ name, type, input }) => field(name, input, { hint: type }))),
    /** The row; empty inputs are null. */
    read: () => Object.fromEntries(inputs.map(({ name, type, input }) => [name, readValue(type, input.value)])),
    inputs,
  };
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
