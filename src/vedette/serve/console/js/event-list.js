/** The last events, newest first, as they happen. */

import { h } from "./element.js";
import { follow } from "./events.js";
import { moment, plain, rowTime } from "./format.js";
import { hrefOf } from "./router.js";

const MOST = 100;

export class EventList {
  /** @param {{withSet?: boolean}} [options] */
  constructor({ withSet = false } = {}) {
    this.withSet = withSet;
    this.list = h("ul", { class: "feed", tabindex: "0", "aria-label": "Events, newest first" });
    this.none = h("p", { class: "empty" }, "No event yet.");
    this.lost = h("p", { class: "notice warn", hidden: true }, "The connection is lost. Trying again …");
    this.element = h("div", { class: "stack" }, this.lost, this.none, this.list);
    this.list.hidden = true;
  }

  /** Show the events of a set after a sequence number, and those that come. */
  follow(set, signal, filter) {
    follow(set, {
      ...filter,
      signal,
      onEvent: (event) => this.add(set, event),
      onState: (state) => { this.lost.hidden = state === "open"; },
    });
  }

  add(set, event) {
    this.none.hidden = true;
    this.list.hidden = false;
    this.list.prepend(this.line(set, event));
    while (this.list.children.length > MOST) this.list.lastChild.remove();
  }

  line(set, event) {
    if (event.key === undefined) return this.pairLine(set, event);
    return h("li", { class: "fresh" },
      h("time", { datetime: event.time }, moment(event.time)),
      h("span", { class: `mark ${event.event}` }, event.event),
      h("span", {}, h("strong", {}, event.key), event.event === "exit" ? " left " : " entered ",
        h("a", { href: hrefOf(["sets", set, "queries", String(event.query)]) }, String(event.query))),
      this.withSet && h("a", { class: "muted small", href: hrefOf(["sets", set]) }, set),
      h("a", { class: "small", href: hrefOf(["why"], { set, query: event.query, key: event.key }), "aria-label": `Why did ${event.key} ${event.event} ${event.query}?` }, "Why?"));
  }

  /** An event of a join: a pair of an object and a zone, or of rows. */
  pairLine(set, { sequence, sign, query, a, b, start, end, ...rest }) {
    const type = sign === undefined ? "pair" : sign > 0 ? "emit" : "retract";
    const link = (id) => h("a", { href: hrefOf(["sets", set, "queries", String(id)]) }, String(id));
    const given = Object.entries(rest).filter(([, value]) => value !== null).map(([name, value]) => `${name} ${plain(value)}`);
    return h("li", { class: "fresh", "data-sequence": sequence },
      h("span", { class: `mark ${type === "retract" ? "warn" : "good"}` }, type),
      a === undefined ? link(query) : h("span", {}, h("strong", {}, String(a)), " meets ", link(b), ` from ${rowTime(start)} until ${rowTime(end)}`),
      given.length > 0 && h("span", { class: "muted small" }, given.join(", ")),
      this.withSet && h("a", { class: "muted small", href: hrefOf(["sets", set]) }, set));
  }
}
