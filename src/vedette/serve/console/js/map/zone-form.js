/** The form of a zone: its id, owner and options. Saving adds a query, or replaces the geometry in its text. */

import { get, patch, post, remove, setPath } from "../api.js";
import { confirm } from "../dialog.js";
import { h } from "../element.js";
import { field, textInput } from "../form.js";
import { messageLine, notify } from "../notice.js";
import { writeZone } from "./zone-text.js";

const OPTIONS = [["dwell", "Dwell", "stay so long before the enter: 5 minutes"], ["cooldown", "Cooldown", "no further event for: 1 hour"]];

/**
 * @param {{set: string, x: string, y: string, feature?: any, query?: any, shape: () => any, mayWrite: boolean, onDone: () => void}} options
 * `feature` and `query`: of a zone that exists
 */
export function zoneForm({ set, x, y, feature, query, shape, mayWrite, onDone }) {
  const line = messageLine();
  const id = textInput({ required: true, value: query?.id ?? "", readonly: Boolean(query) });
  const owner = textInput({ value: query?.metadata.owner ?? "" });
  const options = OPTIONS.map(([name, label, hint]) => [name, textInput({ value: query?.[name] ?? "" }), label, hint]);
  const text = h("code", { class: "small zone-text" });
  const save = h("button", { class: "main", type: "submit", disabled: !mayWrite }, query ? "Save zone" : "Add zone");
  const cancel = h("button", { type: "button", on: { click: onDone } }, "Cancel");
  const drop = query && mayWrite && h("button", { class: "danger", type: "button", on: { click: askToRemove } }, "Remove");
  const form = h("form", { class: "stack", "aria-label": "Zone", on: { submit } },
    h("div", { class: "fields" }, field("Id", id), field("Owner", owner), options.map(([, input, label, hint]) => field(label, input, { hint }))),
    text, line, h("div", { class: "row" }, save, cancel, drop));

  function whole() {
    const fence = writeZone(shape(), x, y);
    return query ? query.where.slice(0, feature.properties.start) + fence + query.where.slice(feature.properties.end) : fence;
  }

  async function submit(event) {
    event.preventDefault();
    try {
      const own = Object.fromEntries(options.map(([name, input]) => [name, input.value.trim()]).filter(([, value]) => value));
      const metadata = { ...query?.metadata, ...(owner.value.trim() ? { owner: owner.value.trim() } : {}) };
      const body = { where: whole(), metadata, ...own };
      if (query) await patch(setPath(set, "queries", query.id), body);
      else await post(setPath(set, "queries"), { id: id.value.trim(), ...body });
      notify(`Zone ${id.value.trim()} is saved.`);
      onDone();
    } catch (error) {
      line.tell(error.message);
    }
  }

  function askToRemove() {
    confirm({
      title: `Remove zone ${query.id}?`, text: "Its history keeps it, and it can be restored.", label: "Remove",
      action: async () => { await remove(setPath(set, "queries", query.id)); onDone(); },
    });
  }

  /** Show the text of the shape, or what to do next. */
  function update(isWhole) {
    save.disabled = !isWhole || !mayWrite;
    const { kind, centre } = shape();
    const next = kind === "polygon" ? "Click the corners on the map, at least three." : centre ? "Click a point of the edge." : "Click the middle of the circle.";
    text.textContent = isWhole ? whole() : next;
  }

  return { element: form, update };
}

/** The query of a zone. */
export const readQuery = (set, id) => get(setPath(set, "queries", String(id)));
