/**
 * The editor of a condition: completion of fields and functions, the mistake underlined where `check` says, and its
 * warnings. The text is in a plain textarea; a layer behind it has the same letters and the line under the mistake.
 */

import { get, post, setPath } from "./api.js";
import { h, put } from "./element.js";
import { fieldsOf } from "./schema.js";

const WAIT = 250; // milliseconds without a key until the text is checked
const WORDS = ["AND", "OR", "NOT", "BETWEEN", "IN", "LIKE", "IS NULL", "IS NOT NULL", "TRUE", "FALSE", "CASE", "WHEN", "THEN", "ELSE", "END", "RLIKE"];
let functions = null; // of the language; read once
let lastId = 0;

export class Editor {
  /** @param {{set: any, value?: string, label?: string, onCheck?: (checked: any) => void}} options `set` is its record */
  constructor({ set, value = "", label = "Condition", onCheck = () => {} }) {
    const id = `editor-${++lastId}`;
    this.set = set;
    this.onCheck = onCheck;
    this.fields = fieldsOf(set.schema);
    this.timer = 0;
    this.checks = 0;
    this.offered = [];
    this.chosen = 0;
    this.layer = h("div", { class: "editor-layer", "aria-hidden": "true" });
    this.area = h("textarea", {
      id, rows: 4, spellcheck: "false", autocapitalize: "off", autocomplete: "off", "aria-autocomplete": "list",
      "aria-controls": `${id}-list`, "aria-describedby": `${id}-said`,
      on: { input: () => this.changed(), keydown: (event) => this.key(event), scroll: () => { this.layer.scrollTop = this.area.scrollTop; }, blur: () => this.offer([]) },
    });
    this.area.value = value;
    this.list = h("ul", { class: "editor-list", role: "listbox", id: `${id}-list`, "aria-label": "Completions", hidden: true });
    this.said = h("div", { class: "editor-said", id: `${id}-said`, role: "status" });
    this.element = h("div", { class: "field" }, h("label", { for: id }, label),
      h("div", { class: "editor" }, this.layer, this.area, this.list), this.said);
    this.draw(null);
    functions ??= get("/v1/functions");
    functions.catch(() => { functions = null; });
    if (value.trim()) this.check();
  }

  get value() {
    return this.area.value;
  }

  async changed() {
    this.draw(null);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.check(), WAIT);
    const word = this.word();
    this.offer(word.length >= 1 ? await this.complete(word) : []);
  }

  /** The part of a name before the cursor. */
  word() {
    return this.area.value.slice(0, this.area.selectionStart).match(/[\p{L}_][\p{L}\p{N}_.]*$/u)?.[0] ?? "";
  }

  async complete(word) {
    const known = await (functions ?? []);
    if (word !== this.word()) return [];
    const begins = (text) => text.toLowerCase().startsWith(word.toLowerCase()) && text !== word;
    return [
      ...this.fields.filter((each) => begins(each.name)).map((each) => ({ insert: each.name, label: each.name, more: each.type })),
      ...WORDS.filter(begins).map((each) => ({ insert: each, label: each, more: "" })),
      ...known.filter((each) => begins(each.name)).map((each) => ({ insert: `${each.name}(`, label: each.call, more: each.gives.replaceAll("`", "") })),
    ].slice(0, 8);
  }

  offer(found) {
    this.offered = found;
    this.chosen = 0;
    this.list.hidden = !found.length;
    put(this.list, found.map((each, place) => h("li", {
      role: "option", id: `${this.list.id}-${place}`, on: { mousedown: (event) => { event.preventDefault(); this.take(place); } },
    }, h("code", {}, each.label), " ", h("span", { class: "muted small" }, each.more))));
    this.mark();
  }

  mark() {
    [...this.list.children].forEach((each, place) => each.setAttribute("aria-selected", String(place === this.chosen)));
    if (this.offered.length) this.area.setAttribute("aria-activedescendant", `${this.list.id}-${this.chosen}`);
    else this.area.removeAttribute("aria-activedescendant");
  }

  key(event) {
    if (!this.offered.length) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) this.chosen = (this.chosen + step + this.offered.length) % this.offered.length;
    else if (event.key === "Tab" || event.key === "Enter") this.take(this.chosen);
    else if (event.key === "Escape") this.offer([]);
    else return;
    event.preventDefault();
    event.stopPropagation();
    this.mark();
  }

  take(place) {
    const { insert } = this.offered[place];
    const end = this.area.selectionStart;
    this.area.setRangeText(insert, end - this.word().length, end, "end");
    this.offer([]);
    this.changed().then(() => this.offer([]));
    this.area.focus();
  }

  async check() {
    const check = ++this.checks;
    const text = this.area.value;
    if (!text.trim()) return put(this.said);
    try {
      const checked = await post(setPath(this.set.name, "check"), { where: text });
      if (check !== this.checks || text !== this.area.value) return null;
      this.draw(checked.error ?? null);
      put(this.said,
        checked.error && h("p", { class: "problem" }, checked.error.message),
        checked.warnings.map((each) => h("p", { class: "notice warn" }, each)),
        checked.valid && !checked.warnings.length && h("p", { class: "hint" }, "Valid"));
      this.area.setAttribute("aria-invalid", String(!checked.valid));
      this.onCheck(checked);
    } catch (error) {
      put(this.said, h("p", { class: "problem" }, error.message));
    }
    return null;
  }

  /** Draw the letters again, with a line under the mistake. Positions count characters, not UTF-16 units. */
  draw(error) {
    const letters = Array.from(this.area.value);
    const start = error?.position ?? letters.length;
    const end = Math.max(error?.end ?? start, Math.min(start + 1, letters.length));
    put(this.layer, letters.slice(0, start).join(""),
      error && error.position !== undefined && h("mark", {}, letters.slice(start, end).join("") || " "), letters.slice(end).join(""), "\n");
  }
}
