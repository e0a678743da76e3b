/** The map: zones, keys that move over it, and their events. Zones are drawn and edited here. */

import { get, setPath } from "../api.js";
import { h, put } from "../element.js";
import { follow } from "../events.js";
import { choice, field } from "../form.js";
import { count, moment, plural } from "../format.js";
import { followKeys } from "../live-keys.js";
import { Drawing } from "../map/drawing.js";
import { KeyLayer } from "../map/key-layer.js";
import { loadLeaflet, makeMap } from "../map/leaflet.js";
import { readQuery, zoneForm } from "../map/zone-form.js";
import { shapeOf } from "../map/zone-text.js";
import { go } from "../router.js";
import { may } from "../session.js";
import { monitoredSets, placeFields, readSet } from "../set-choice.js";
import { showWhy } from "../why-event.js";

const MOST_ZONES = 1000;
const MOST_EVENTS = 60;

/** @param {import("../router.js").Place} place */
export async function show({ main, query, signal, session }) {
  const [{ sets, tiles }, L] = await Promise.all([monitoredSets(signal), loadLeaflet()]);
  const known = await Promise.all(sets.map(async (each) => ({ name: each.name, sequence: each.sequence, ...(await readSet(each, signal)) })));
  const able = known.filter((each) => placeFields(each.fields));
  const set = able.find((each) => each.name === query.set) ?? able[0];
  if (!set) {
    put(main, h("h1", {}, "Map"), h("p", { class: "empty" }, "No set of kind border has the fields lon and lat. Create one, or see some with: vedette serve --demo"));
    return;
  }
  const page = new MapPage(L, set, session, signal);
  const chosen = choice(able.map((each) => each.name), set.name, { on: { change: (event) => go(["map"], { set: event.target.value }) } });
  put(main, page.layout(chosen));
  requestAnimationFrame(() => page.start(tiles)); // Leaflet measures its place, which is shown by then
}

class MapPage {
  constructor(L, set, session, signal) {
    Object.assign(this, { L, set, session, signal, fields: placeFields(set.fields) });
    this.name = set.name;
    this.place = h("div", { class: "map", role: "application", "aria-label": `Map of the set ${set.name}` });
    this.side = h("div", { class: "stack" });
    this.counts = h("p", { class: "muted small", role: "status" });
    this.events = h("ul", { class: "feed", tabindex: "0", "aria-label": "Events, newest first" });
    this.waiting = [];
    this.zoneCount = "";
    this.keyCount = "";
  }

  layout(chosen) {
    const mayWrite = may(this.session, "write");
    const draw = (kind) => h("button", { type: "button", disabled: !mayWrite, on: { click: () => this.draw(kind) } }, `Draw ${kind}`);
    return [
      h("div", { class: "head" }, h("h1", {}, "Map"), h("div", { class: "row" }, draw("polygon"), draw("circle"))),
      h("div", { class: "with-side" },
        h("div", { class: "stack" }, this.place, this.counts),
        h("div", { class: "stack" }, field("Set", chosen), this.side,
          h("section", { class: "card", "aria-labelledby": "map-events" }, h("h2", { id: "map-events" }, "Events"), this.events))),
    ];
  }

  async start(tiles) {
    if (this.signal.aborted) return;
    const { L, signal } = this;
    this.map = await makeMap(L, this.place, tiles);
    this.zones = L.geoJSON(null, {
      style: (feature) => this.style(feature),
      pointToLayer: (feature, at) => L.circle(at, { radius: feature.properties.radius }),
      onEachFeature: (feature, layer) => layer.on("click", () => this.pickZone(feature)),
    }).addTo(this.map);
    this.keys = new KeyLayer(L, this.map, { onPick: (key) => this.drawing.shape || this.pickKey(key) });
    this.drawing = new Drawing(L, this.map, { onChange: (_, isWhole) => this.form?.update(isWhole) });
    signal.addEventListener("abort", () => {
      this.keys.end();
      this.keyStream?.abort();
      this.map.remove();
    });
    await this.fit();
    this.map.on("moveend", () => this.look());
    this.look();
    const { sequence } = this.set;
    follow(this.name, { after: Math.max(0, (sequence ?? 0) - 15), signal, onEvent: (event) => this.addEvent(event) });
  }

  /** Begin where the zones are. */
  async fit() {
    const { features } = await get(setPath(this.name, "zones"), { limit: 200 }, this.signal);
    if (features.length) this.map.fitBounds(this.L.geoJSON(features).getBounds().pad(0.05), { animate: false, maxZoom: 13 });
  }

  /** Read the zones of the area that is shown, and follow its keys. */
  look() {
    const bounds = this.map.getBounds().pad(0.1);
    const bbox = [Math.max(-180, bounds.getWest()), Math.max(-90, bounds.getSouth()), Math.min(180, bounds.getEast()), Math.min(90, bounds.getNorth())].join(",");
    this.keyStream?.abort();
    this.keyStream = new AbortController();
    if (this.set.monitor && !this.session.owner) {
      const { x, y } = this.fields;
      followKeys(this.name, { query: { fields: `${x},${y}`, x, y, bbox }, signal: this.keyStream.signal, onKeys: (message) => this.takeKeys(message) });
    }
    this.showZones(bbox).catch(() => {});
  }

  async showZones(bbox) {
    this.bbox = bbox;
    const { features, more } = await get(setPath(this.name, "zones"), { bbox, limit: MOST_ZONES }, this.signal);
    if (this.signal.aborted || this.bbox !== bbox) return;
    this.zones.clearLayers();
    this.zones.addData(features);
    this.zoneCount = more ? `the largest ${count(features.length)} of ${plural(features.length + more, "zone")}` : plural(features.length, "zone");
    this.showCounts();
  }

  takeKeys(message) {
    this.keys.update(message, this.fields.x, this.fields.y);
    this.keyCount = message.inside > message.shown ? `${count(message.shown)} of ${plural(message.inside, "key")}` : plural(message.inside, "key");
    this.showCounts();
  }

  showCounts() {
    const text = [this.keyCount, this.zoneCount].filter(Boolean).join(", ");
    if (this.counts.textContent !== text) this.counts.textContent = text;
  }

  style(feature) {
    const css = getComputedStyle(document.documentElement);
    const colour = css.getPropertyValue(feature.id === this.picked ? "--series-4" : feature.properties.kind === "circle" ? "--series-3" : "--series-2");
    return { color: colour, weight: 1.5, fillOpacity: 0.12 };
  }

  addEvent(event) {
    this.keys.flash(event.key, event.event);
    this.waiting.push(event);
    if (this.waiting.length > MOST_EVENTS) this.waiting.shift();
    if (this.events.matches(":hover, :focus-within")) return; // the list stands still while somebody reads it
    for (const each of this.waiting.splice(0)) this.listEvent(each);
  }

  listEvent(event) {
    const words = event.event === "exit" ? " left " : " entered ";
    this.events.prepend(h("li", {},
      h("time", { datetime: event.time }, moment(event.time)), h("span", { class: `mark ${event.event}` }, event.event),
      h("button", { class: "link", type: "button", on: { click: () => showWhy(this.name, event, this.set.monitor) } }, h("strong", {}, event.key), words, String(event.query), ": why?")));
    while (this.events.children.length > MOST_EVENTS) this.events.lastChild.remove();
  }

  pickKey(key) {
    put(this.side, h("section", { class: "card", "aria-labelledby": "picked" },
      h("h2", { id: "picked" }, String(key)),
      h("p", {}, this.set.fields.map((each) => [h("a", { href: `#/values?${new URLSearchParams({ set: this.name, key, field: each })}` }, `Chart of ${each}`), " "])),
      h("div", { class: "row" }, h("button", { type: "button", on: { click: () => put(this.side) } }, "Close"))));
  }

  draw(kind) {
    this.endForm();
    this.openForm(`New ${kind}`, {});
    this.drawing.begin(kind);
  }

  async pickZone(feature) {
    if (this.drawing.shape) return;
    const query = await readQuery(this.name, feature.id);
    const shape = shapeOf(feature);
    if (!shape || !may(this.session, "write")) {
      put(this.side, h("section", { class: "card" }, h("h2", {}, String(feature.id)), h("code", { class: "small zone-text" }, query.where)));
      return;
    }
    this.picked = feature.id;
    this.openForm(String(feature.id), { feature, query });
    this.drawing.edit(shape);
  }

  openForm(title, { feature, query }) {
    const { x, y } = feature?.properties ?? this.fields;
    this.form = zoneForm({ set: this.name, x, y, feature, query, shape: () => this.drawing.shape, mayWrite: may(this.session, "write"), onDone: () => { this.endForm(); this.showZones(this.bbox); } });
    put(this.side, h("section", { class: "card", "aria-labelledby": "zone-title" }, h("h2", { id: "zone-title" }, title), this.form.element));
  }

  endForm() {
    this.drawing.end();
    this.form = this.picked = null;
    put(this.side);
  }
}
