/** Values: a field of a key over time, with the range of an alert and its events, live. */

import { get, setPath } from "../api.js";
import { drawChart, VIEW_BOX } from "../value-chart.js";
import { h, put, s } from "../element.js";
import { follow } from "../events.js";
import { choice, field, textInput } from "../form.js";
import { moment, number } from "../format.js";
import { followKeys } from "../live-keys.js";
import { go } from "../router.js";
import { monitoredSets, readSet } from "../set-choice.js";
import { showWhy } from "../why-event.js";

const MOST = 2000; // values in the chart
const MOST_EVENTS = 300;
const BEFORE = 20_000; // events that are looked through for those of the key

/** @param {import("../router.js").Place} place */
export async function show({ main, query, signal }) {
  const { sets } = await monitoredSets(signal);
  const able = sets.filter((each) => each.monitored);
  const chosen = able.find((each) => each.name === query.set) ?? able.find((each) => each.name === "market") ?? able[0];
  if (!chosen) {
    put(main, h("h1", {}, "Values"), h("p", { class: "empty" }, "No set has a monitor yet. See two with: vedette serve --demo"));
    return;
  }
  const set = { name: chosen.name, sequence: chosen.sequence ?? 0, ...(await readSet(chosen, signal)) };
  const { keys } = await get(setPath(set.name, "keys"), { limit: 1000 }, signal);
  const key = query.key ?? keys[0]?.key;
  const own = set.fields.includes(query.field) ? query.field : (set.fields.find((each) => each === "price") ?? set.fields[0]);
  const move = (changes) => go(["values"], { set: set.name, key, field: own, query: query.query, ...changes });
  const list = h("datalist", { id: "keys-of-set" }, keys.map((each) => h("option", { value: each.key })));
  const form = h("div", { class: "fields" },
    field("Set", choice(able.map((each) => each.name), set.name, { on: { change: (event) => go(["values"], { set: event.target.value }) } })),
    field("Key", textInput({ value: key ?? "", list: "keys-of-set", on: { change: (event) => move({ key: event.target.value }) } })), list,
    field("Field", choice(set.fields, own, { on: { change: (event) => move({ field: event.target.value }) } })),
    field("Alert", textInput({ value: query.query ?? "", placeholder: "Id of a query", on: { change: (event) => move({ query: event.target.value }) } }), { hint: "Its range is shown behind the line" }));
  const page = new Values(set, key, own, query.query || undefined, signal, (id) => move({ query: id }));
  put(main, h("h1", {}, "Values"), form, page.element);
  if (key !== undefined && own) await page.start();
}

class Values {
  constructor(set, key, name, query, signal, onQuery) {
    Object.assign(this, { set, key, name, query, signal, onQuery });
    this.times = [];
    this.values = [];
    this.ranges = [];
    this.marks = [];
    this.svg = s("svg", { class: "value-chart", viewBox: VIEW_BOX, role: "img", "aria-label": `${name} of ${key} over time` });
    this.last = h("p", { class: "muted" });
    this.events = h("ul", { class: "feed", tabindex: "0", "aria-label": "Events of the key, newest first" });
    this.element = h("div", { class: "stack" },
      h("section", { class: "card" }, h("h2", {}, `${name} of ${key}`), this.svg, this.last),
      h("section", { class: "card" }, h("h2", {}, "Events"), this.events));
  }

  async start() {
    const { set, key, name, query, signal } = this;
    const found = await get(setPath(set.name, "values"), { key, field: name, query, limit: MOST }, signal);
    this.ranges = found.ranges ?? [];
    found.times.forEach((time, place) => this.add(time, found.values[place]));
    this.draw();
    const after = Math.max(0, set.sequence - BEFORE);
    follow(set.name, { key, query, after, signal, onEvent: (event) => this.addEvent(event) });
    const time = set.monitor.time;
    followKeys(set.name, { query: { fields: `${name},${time}`, key }, signal, onKeys: ({ fields }) => {
      if (!fields[name].length) return;
      this.add(fields[time][0], fields[name][0]);
      this.draw();
    } });
    const timer = setInterval(() => this.isStale && this.draw(), 250);
    signal.addEventListener("abort", () => clearInterval(timer));
  }

  add(time, value) {
    const at = Date.parse(time);
    if (value === null || Number.isNaN(at) || at <= (this.times.at(-1) ?? -Infinity)) return;
    this.times.push(at);
    this.values.push(value);
    if (this.times.length > MOST) {
      this.times.shift();
      this.values.shift();
    }
  }

  addEvent(event) {
    const time = Date.parse(event.time);
    const title = `${event.event} ${event.query} at ${moment(event.time)}`;
    const why = () => showWhy(this.set.name, event, this.set.monitor);
    this.marks.push({ time, value: event[this.name] ?? this.valueAt(time), kind: event.event, title, onPick: why });
    if (this.marks.length > MOST_EVENTS) this.marks.shift();
    this.events.prepend(h("li", {},
      h("time", { datetime: event.time }, moment(event.time)), h("span", { class: `mark ${event.event}` }, event.event),
      h("button", { class: "link", type: "button", on: { click: why } }, h("strong", {}, String(event.query)), ": why?"),
      h("button", { class: "link small", type: "button", on: { click: () => this.onQuery(event.query) } }, `Show range of ${event.query}`)));
    while (this.events.children.length > MOST_EVENTS) this.events.lastChild.remove();
    this.isStale = true;
  }

  valueAt(time) {
    const place = this.times.findIndex((each) => each >= time);
    return this.values.at(place) ?? 0;
  }

  draw() {
    this.isStale = false;
    drawChart(this.svg, this);
    this.last.textContent = this.values.length ? `Now ${number(this.values.at(-1))}, at ${moment(new Date(this.times.at(-1)).toISOString())}` : "No value since the start of the service.";
  }
}
