/** Fields of forms, each with its label. */

import { h } from "./element.js";

let lastId = 0;

/**
 * A labelled input.
 * @param {string} label
 * @param {any} input an element; without one, a text input is made from `given`
 * @param {{hint?: string}} [more]
 */
export function field(label, input, { hint } = {}) {
  input.id ||= `field-${++lastId}`;
  const note = hint && h("span", { class: "hint", id: `${input.id}-hint` }, hint);
  if (note) input.setAttribute("aria-describedby", note.id);
  return h("div", { class: "field" }, h("label", { for: input.id }, label), input, note);
}

export const textInput = (given = {}) => h("input", { type: "text", autocomplete: "off", spellcheck: "false", ...given });

/** A choice. @param {(string | [string, string])[]} options values, or pairs of value and label */
export function choice(options, value, given = {}) {
  const made = h("select", given, options.map((each) => {
    const [own, label] = Array.isArray(each) ? each : [each, each];
    return h("option", { value: own, selected: own === value }, label);
  }));
  return made;
}

/** A box to tick, with its label at the right. */
export function tick(label, given = {}) {
  const input = h("input", { type: "checkbox", id: `field-${++lastId}`, ...given });
  return { input, element: h("div", { class: "check" }, input, h("label", { for: input.id }, label)) };
}
