/** Tables, and long lists of which one page at a time is asked for. */

import { h, put } from "./element.js";
import { messageLine } from "./notice.js";

/**
 * @typedef {{label: string, cell: (record: any) => any, class?: string}} Column
 * @param {string} caption what the table has, for screen readers
 * @param {Column[]} columns
 * @param {any[]} records
 * @param {string} [empty] said instead of a table without rows
 */
export function table(caption, columns, records, empty = "Nothing yet.") {
  if (!records.length) return h("p", { class: "empty" }, empty);
  return h("div", { class: "table", role: "region", "aria-label": caption, tabindex: "0" },
    h("table", {}, h("thead", {}, h("tr", {}, columns.map((each) => h("th", { scope: "col", class: each.class }, each.label)))),
      h("tbody", {}, records.map((record) => h("tr", {}, columns.map((each) => h("td", { class: each.class }, each.cell(record))))))));
}

const drawn = new WeakMap(); // the values that a place shows, as text

/**
 * Show values in a place again, as each few seconds: only if they have changed, and the focus and the scrolled position stay.
 * @param {HTMLElement} place @param {any} values @param {() => any} draw what shows them
 */
export function redraw(place, values, draw) {
  const text = JSON.stringify(values);
  if (drawn.get(place) === text) return;
  drawn.set(place, text);
  const focused = place.contains(document.activeElement) && nameOf(document.activeElement);
  const left = place.querySelector(".table")?.scrollLeft ?? 0;
  put(place, draw());
  place.querySelector(".table")?.scrollTo({ left });
  if (focused) [...place.querySelectorAll("button, select, a, .table")].find((each) => nameOf(each) === focused)?.focus({ preventScroll: true });
}

const nameOf = (element) => `${element.tagName} ${element.getAttribute("aria-label") ?? (element.tagName === "SELECT" ? "" : element.textContent)}`;

/**
 * A list by pages: the service is asked for one page, and for the next with the cursor of the page before.
 * @param {{caption: string, columns: Column[], read: (after: any) => Promise<{records: any[], next: any}>, empty?: string}} options
 */
export class PagedTable {
  constructor({ caption, columns, read, empty }) {
    Object.assign(this, { caption, columns, read, empty });
    this.cursors = [null]; // of the pages up to the one that is shown
    this.next = null;
    this.reads = 0;
    this.body = h("div", {});
    this.line = messageLine();
    this.back = h("button", { type: "button", on: { click: () => this.move(-1) } }, "Previous");
    this.on = h("button", { type: "button", on: { click: () => this.move(1) } }, "Next");
    this.place = h("span", { class: "muted", "aria-live": "polite" });
    this.steps = h("div", { class: "row" }, this.back, this.on, this.place);
    this.element = h("div", { class: "stack" }, this.line, this.body, this.steps);
  }

  /** Show the first page again, as after another search. */
  first() {
    this.cursors = [null];
    return this.load();
  }

  move(step) {
    if (step > 0) this.cursors.push(this.next);
    else this.cursors.pop();
    return this.load();
  }

  async load() {
    const read = ++this.reads;
    try {
      const page = await this.read(this.cursors.at(-1));
      if (read !== this.reads) return; // a later search has been started
      this.next = page.next;
      put(this.body, table(this.caption, this.columns, page.records, this.empty));
      this.line.tell("");
      this.back.disabled = this.cursors.length === 1;
      this.on.disabled = page.next === null;
      this.steps.hidden = this.back.disabled && this.on.disabled;
      this.place.textContent = `Page ${this.cursors.length}`;
    } catch (error) {
      if (error.name !== "AbortError" && read === this.reads) this.line.tell(error.message);
    }
  }
}
