/** Moving objects: where they will be, and which pairs of objects and zones will meet, on a time slider. Live. */

import { get, setPath } from "../api.js";
import { h, put } from "../element.js";
import { choice, field, textInput } from "../form.js";
import { count, number, plural, rowTime } from "../format.js";
import { Clock, pairsAt } from "../moving/motion.js";
import { Scene } from "../moving/scene.js";
import { messageLine } from "../notice.js";
import { go } from "../router.js";
import { redraw, table } from "../table.js";

const EVERY = 1000; // milliseconds between two reads
const ZONES_EVERY = 10; // reads between two reads of the zones
const MOST = 1000; // objects, and zones that are in no pair
const LISTED = 200; // pairs
const STEPS = 120; // of the slider
const PLAY = 12_000; // milliseconds from its start to its end

/** @param {import("../router.js").Place} place */
export async function show({ main, query, signal, session }) {
  const { sets } = await get("/v1/status", {}, signal);
  const able = sets.filter((each) => each.kind === "moving join" && each.monitored).map((each) => each.name);
  const name = able.includes(query.set) ? query.set : able[0];
  if (!name || session.owner) {
    const why = session.owner ? "Objects are for all owners, and your token is confined to one." : "No set of the kind moving join has a monitor yet. See one with: vedette serve --demo";
    put(main, h("h1", {}, "Moving objects"), h("p", { class: "empty" }, why));
    return;
  }
  const page = new Moving(name, query.search ?? "", signal);
  const chosen = choice(able, name, { on: { change: (event) => go(["moving"], { set: event.target.value }) } });
  const search = textInput({ type: "search", value: query.search ?? "", on: { change: (event) => go(["moving"], { set: name, search: event.target.value }) } });
  put(main, h("h1", {}, "Moving objects"), page.layout(h("div", { class: "fields tight" }, field("Set", chosen), field("Object contains", search))));
  await page.start();
}

class Moving {
  constructor(name, search, signal) {
    Object.assign(this, { name, search, signal });
    this.clock = new Clock();
    this.reads = 0;
    this.answer = null;
    this.zones = [];
    this.picked = null;
    this.held = null; // the time that is shown, in the future; null: now
    this.playedFrom = null; // while it plays: when the slider would have been at its start
    this.canvas = h("canvas", { class: "scene", role: "img", "aria-label": `Objects and zones of the set ${name} at the time of the slider` });
    this.scene = new Scene(this.canvas);
    this.slider = h("input", { type: "range", min: "0", max: String(STEPS), step: "1", value: "0", on: { input: () => this.hold(this.now() + (this.answer.interval * Number(this.slider.value)) / STEPS) } });
    this.play = h("button", { type: "button", class: "main", on: { click: () => (this.playedFrom === null ? this.begin() : this.pause()) } }, "Play");
    this.live = h("button", { type: "button", on: { click: () => this.hold(null) } }, "Now");
    this.time = h("output", { class: "mono" });
    this.counts = h("p", { class: "muted small" });
    this.list = h("div", { class: "pairs" });
    this.more = h("p", { class: "muted small" });
    this.line = messageLine();
  }

  layout(form) {
    return h("div", { class: "with-side" },
      h("div", { class: "stack" }, this.line, this.canvas,
        h("div", { class: "scene-time" }, this.play, this.live, field("Time ahead", this.slider), this.time), this.counts),
      h("div", { class: "stack" }, form,
        h("section", { class: "card", "aria-labelledby": "pairs" }, h("h2", { id: "pairs" }, "Pairs that will meet"), this.list, this.more)));
  }

  async start() {
    await this.read();
    const timer = setInterval(() => document.hidden || this.read(), EVERY);
    const onTheme = () => this.draw();
    document.addEventListener("theme", onTheme);
    this.signal.addEventListener("abort", () => {
      clearInterval(timer);
      document.removeEventListener("theme", onTheme);
    });
    const stands = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const frame = () => {
      if (this.signal.aborted) return;
      if (this.playedFrom !== null || (!stands && this.clock.speed)) this.draw();
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(() => { this.draw(); frame(); }); // the canvas has a size once it is shown
  }

  /** Ask for the objects and their pairs, and sometimes for the zones. */
  async read() {
    if (this.isReading) return;
    this.isReading = true;
    try {
      if (this.reads++ % ZONES_EVERY === 0) this.zones = (await get(setPath(this.name, "queries"), { limit: MOST }, this.signal)).queries;
      this.answer = await get(setPath(this.name, "objects"), { limit: MOST, search: this.search }, this.signal);
      this.line.tell("");
      this.take(this.answer);
    } catch (error) {
      if (!this.signal.aborted) this.line.tell(error.message);
    } finally {
      this.isReading = false;
    }
  }

  take({ time, objects, pairs, zones, more_pairs: more, total }) {
    if (time !== null) this.clock.note(time, performance.now());
    const known = new Map([...this.zones, ...zones].map((each) => [each.id, each]));
    this.scene.set(objects, [...known.values()], pairs, time);
    this.inView = `${objects.length < total ? `${count(objects.length)} of ` : ""}${plural(total, "object")}, ${plural(known.size, "zone")}`;
    const hidden = Math.max(0, pairs.length - LISTED) + more;
    this.more.textContent = hidden ? `${plural(hidden, "later pair")} not listed` : "";
    if (!this.list.matches(":hover")) this.showPairs(pairs.slice(0, LISTED)); // it stands still while somebody chooses
    this.draw();
  }

  showPairs(pairs) {
    const isNow = (each) => each.start <= this.clock.time;
    const columns = [
      { label: "Pair", cell: (each) => h("button", { type: "button", class: "link", "aria-label": `Show ${each.a} and ${each.b}`, on: { click: () => this.pick(each) } }, h("strong", {}, String(each.a)), ` and ${each.b}`) },
      { label: "From", cell: (each) => (isNow(each) ? h("span", { class: "mark warn" }, "now") : rowTime(each.start)) },
      { label: "Until", cell: (each) => `${each.ends ? "" : "after "}${rowTime(each.end)}` },
    ];
    redraw(this.list, [pairs, pairs.filter(isNow).length], () => table("Pairs that will meet", columns, pairs, "None: no object will meet a zone."));
  }

  /** Move to the moment at which a pair meets, and mark it. */
  pick(pair) {
    this.picked = pair;
    this.hold(pair.start);
  }

  /** Show a time, or now. */
  hold(time) {
    this.pause();
    this.held = time;
    this.draw();
  }

  begin() {
    const done = Number(this.slider.value) / STEPS;
    this.playedFrom = performance.now() - (done < 1 ? done : 0) * PLAY;
    this.play.textContent = "Pause";
  }

  pause() {
    this.playedFrom = null;
    this.play.textContent = "Play";
  }

  now() {
    return this.clock.at(performance.now());
  }

  draw() {
    if (this.clock.time === null) {
      this.say(this.counts, "No object has sent a row yet.");
      return;
    }
    const { interval, pairs } = this.answer;
    const now = this.now();
    if (this.playedFrom !== null) {
      const done = Math.min(1, (performance.now() - this.playedFrom) / PLAY);
      this.held = now + done * interval;
      if (done === 1) this.pause();
    }
    if (this.held <= now) this.held = null;
    const time = this.held ?? now;
    this.slider.value = String(Math.round((STEPS * (time - now)) / interval));
    this.scene.draw(time, now, this.picked);
    const meet = pairsAt(pairs, time).length;
    this.say(this.time, `${rowTime(time)} (${this.held === null ? "now" : `+${number(Math.round(10 * (time - now)) / 10)}`})`);
    this.say(this.counts, `${this.inView}; ${meet === 1 ? "1 pair meets" : `${count(meet)} pairs meet`} at this time`);
    this.slider.setAttribute("aria-valuetext", this.time.textContent);
  }

  say(element, text) {
    if (element.textContent !== text) element.textContent = text;
  }
}
