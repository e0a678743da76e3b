/** The form of a delivery: to add one, or to change one. */

import { put, setPath } from "./api.js";
import { openForm } from "./dialog.js";
import { h } from "./element.js";
import { choice, field, textInput } from "./form.js";
import { notify } from "./notice.js";

const FILTERS = [["query", "Only query", ""], ["key", "Only key", ""], ["owner", "Only owner", "Of queries, by their metadata"], ["group_by", "Group by", "A field of events, such as owner: a request has one value of it"]];
const NUMBERS = [["max_events", "Events per request", 100, 10_000], ["attempts", "Attempts", 8, 100]];
const TIMES = [["timeout", "Timeout", "10 seconds"], ["time_limit", "Time limit", "2 minutes"]];

/**
 * @param {{sets: string[], deliveries: any[], delivery: any, done: () => Promise<any>}} options `delivery`: its record; null for a new one
 */
export function openDeliveryForm({ sets, deliveries, delivery, done }) {
  const set = choice(sets, sets[0]);
  const name = textInput({ required: true, maxlength: 100, pattern: "[^\\/]+", title: "A name without a slash" });
  const options = makeOptions(delivery);
  openForm({
    title: delivery ? `Change ${delivery.name} of ${delivery.set}` : "New delivery",
    body: [!delivery && h("div", { class: "fields" }, field("Set", set), field("Name", name)), options.elements],
    saveLabel: delivery ? "Save" : "Add delivery",
    save: async () => {
      const own = delivery ?? { set: set.value, name: name.value };
      if (!delivery && deliveries.some((each) => each.set === own.set && each.name === own.name)) throw new Error(`${own.set} has a delivery ${own.name}. Edit it, or choose another name.`);
      await put(setPath(own.set, "deliveries", own.name), options.read());
      notify(`${own.name} is ${delivery ? "changed" : "added: it begins with the next event"}.`);
      await done();
    },
  });
}

function makeOptions(delivery) {
  const url = textInput({ type: "url", required: !delivery, maxlength: 2000 });
  const events = textInput({ value: delivery?.events?.join(", ") ?? "", placeholder: "all" });
  const secret = textInput({ value: delivery?.secret_env ?? "", placeholder: "not signed" });
  const filters = FILTERS.map(([name, label, hint]) => [name, label, textInput({ value: delivery?.[name] ?? "" }), hint]);
  const numbers = NUMBERS.map(([name, label, first, most]) => [name, label, h("input", { type: "number", required: true, min: 1, max: most, value: delivery?.[name] ?? first })]);
  const times = TIMES.map(([name, label, first]) => [name, label, textInput({ required: true, value: delivery?.[name] ?? first })]);
  return {
    elements: [
      field("URL", url, { hint: delivery ? "Empty leaves the present one, which is not shown" : "Where requests are sent" }),
      h("div", { class: "fields" }, field("Events", events, { hint: "Types with commas, such as enter" }),
        field("Secret in variable", secret, { hint: "The environment variable of the service with the secret of signatures: VEDETTE_WEBHOOK_..." })),
      h("details", { open: filters.some(([, , input]) => input.value) }, h("summary", {}, "Which events"), h("div", { class: "fields" }, filters.map(([, label, input, hint]) => field(label, input, { hint })))),
      h("details", {}, h("summary", {}, "Requests"), h("div", { class: "fields" }, [...numbers, ...times].map(([, label, input]) => field(label, input)))),
    ],
    read: () => ({
      url: url.value || delivery.url,
      events: readTypes(events.value),
      secret_env: secret.value.trim() || null,
      ...Object.fromEntries(filters.map(([name, , input]) => [name, input.value || null])),
      ...Object.fromEntries(numbers.map(([name, , input]) => [name, Number(input.value)])),
      ...Object.fromEntries(times.map(([name, , input]) => [name, input.value])),
    }),
  };
}

function readTypes(text) {
  const types = text.split(",").map((each) => each.trim()).filter(Boolean);
  return types.length ? types : null;
}
