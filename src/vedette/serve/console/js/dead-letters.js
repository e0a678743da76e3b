/** Dead letters: events that could not be delivered. They are sent again, or dropped. */

import { get, post } from "./api.js";
import { confirm, openInfo } from "./dialog.js";
import { h } from "./element.js";
import { choice, field } from "./form.js";
import { moment, plural } from "./format.js";
import { notify } from "./notice.js";
import { redraw, table } from "./table.js";

const MOST = 100; // letters that are shown

export class LetterList {
  /** @param {() => Promise<any>} onChange called to read again, as after letters were sent or dropped */
  constructor(onChange) {
    this.onChange = onChange;
    this.source = ""; // the chosen one
    this.sources = new Set();
    this.sending = new Set(); // the deliveries of this service, by the source of their letters
    this.top = h("div", { class: "row" });
    this.body = h("div", {});
    this.element = h("section", { class: "card", "aria-labelledby": "letters" }, h("h2", { id: "letters" }, "Dead letters"), this.top, this.body);
  }

  read(signal) {
    return get("/v1/dead-letters", { source: this.source, limit: MOST }, signal);
  }

  /** @param {any[]} letters as read @param {string[]} sending the sources whose letters this service can send again */
  draw(letters, sending) {
    this.sending = new Set(sending);
    this.sources = new Set([...this.sources, ...sending, ...letters.map((each) => each.source)]);
    const sources = [...this.sources].sort();
    redraw(this.top, [sources, sending, this.source, letters.length > 0], () => this.controls(sources, letters.length > 0));
    redraw(this.body, [letters, sending], () => [this.letterTable(letters), letters.length === MOST && h("p", { class: "muted" }, `The oldest ${MOST} are shown.`)]);
  }

  controls(sources, isAny) {
    const chosen = choice([["", "All"], ...sources], this.source, { on: { change: () => {
      this.source = chosen.value;
      this.onChange().catch((error) => notify(error.message, "bad"));
    } } });
    if (!sources.length) return null;
    return [field("Source", chosen),
      this.source && isAny && this.sending.has(this.source) && h("button", { type: "button", on: { click: (event) => this.retry({ source: this.source }, event.target) } }, "Retry all"),
      this.source && isAny && h("button", { type: "button", class: "danger", on: { click: () => this.drop({ source: this.source }, `all letters of ${this.source}`) } }, "Drop all")];
  }

  letterTable(letters) {
    return table("Dead letters", [
      { label: "Failed", cell: (each) => moment(each.failed_at) },
      { label: "Source", cell: (each) => each.source },
      { label: "To", cell: (each) => each.host ?? "–" },
      { label: "Reason", class: "text", cell: (each) => each.reason },
      { label: "Attempts", class: "number", cell: (each) => each.attempts },
      { label: "Letter", cell: (each) => this.buttons(each) },
    ], letters, "None: every event was delivered.");
  }

  buttons(letter) {
    const own = { source: letter.source, ids: [letter.id] };
    const name = `${letter.id} of ${letter.source}`;
    return h("div", { class: "row" },
      h("button", { type: "button", "aria-label": `Show ${name}`, on: { click: () => openInfo("Dead letter", h("p", { class: "muted" }, name), h("pre", {}, indented(letter.body))) } }, "Show"),
      this.sending.has(letter.source) && h("button", { type: "button", "aria-label": `Retry ${name}`, on: { click: (event) => this.retry(own, event.target) } }, "Retry"),
      h("button", { type: "button", class: "danger", "aria-label": `Drop ${name}`, on: { click: () => this.drop(own, "this letter") } }, "Drop"));
  }

  async retry(chosen, button) {
    button.disabled = true;
    try {
      const { delivered, failed } = await post("/v1/dead-letters/retry", chosen);
      notify(`${plural(delivered, "letter")} delivered, ${failed} failed.`, failed ? "bad" : "good");
      await this.onChange();
    } catch (error) {
      notify(error.message, "bad");
    } finally {
      button.disabled = false;
    }
  }

  drop(chosen, what) {
    confirm({
      title: `Drop ${what}?`, label: "Drop", text: "What is dropped is never delivered. This cannot be taken back.",
      action: async () => {
        const { dropped } = await post("/v1/dead-letters/drop", chosen);
        notify(`${plural(dropped, "letter")} dropped.`);
        await this.onChange();
      },
    });
  }
}

/** JSON with lines; another text as it is. */
function indented(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
