/** The plan of a set as a picture: rows go through its indexes; residuals check the candidates; axes have the cuts. */

import { h, s } from "./element.js";
import { count, plural } from "./format.js";

const PART = /^ {2}([\d,]+) box(?:es)? on (.+?)(, several per query)?(, with residuals)?: (\w+), ([\d,.]+) bytes per box: (.*?)(?:; about ([\d,.]+) ns per row)?(?: \(others: (.*)\))?$/;
const AXIS = /^ {2}axis (.+): ([\d,]+) cuts?/;

/** @param {string} text what `explain` answers */
export function readPlan(text) {
  const parts = [];
  const axes = [];
  for (const line of text.split("\n").slice(1)) {
    const part = line.match(PART);
    const axis = line.match(AXIS);
    if (part) parts.push({ boxes: toNumber(part[1]), fields: part[2], residual: Boolean(part[4]), index: part[5], why: part[7], ns: part[8] ? toNumber(part[8]) : null, others: part[9] ?? "" });
    else if (axis) axes.push({ name: axis[1], cuts: toNumber(axis[2]) });
  }
  return { title: text.split("\n")[0], parts, axes };
}

const toNumber = (text) => Number(text.replaceAll(",", ""));

/** The parts as lanes from rows to matches; the width of a lane grows with the number of its boxes. */
export function drawPlan({ parts }) {
  const height = 76;
  const total = Math.max(1, parts.length * height);
  const most = Math.max(...parts.map((each) => Math.log10(each.boxes + 1)));
  const lane = (each, place) => {
    const y = place * height + height / 2;
    const width = 2 + (10 * Math.log10(each.boxes + 1)) / most;
    return s("g", {},
      s("path", { class: "plan-lane", "stroke-width": width, d: `M92 ${total / 2} C170 ${total / 2} 130 ${y} 210 ${y} L470 ${y} C550 ${y} 510 ${total / 2} 588 ${total / 2}` }),
      s("rect", { class: "plan-index", x: 200, y: y - 28, width: 280, height: 56, rx: 8 }),
      s("text", { class: "plan-name", x: 340, y: y - 8, "text-anchor": "middle" }, `${each.index}${each.residual ? " + residual" : ""}`),
      s("text", { class: "plan-more", x: 340, y: y + 14, "text-anchor": "middle" }, `${count(each.boxes)} ${each.boxes === 1 ? "box" : "boxes"}${each.ns === null ? "" : ` · ${each.ns} ns per row`}`));
  };
  const end = (x, label) => [s("circle", { class: "plan-end", cx: x, cy: total / 2, r: 40 }), s("text", { class: "plan-name", x, y: total / 2 + 5, "text-anchor": "middle" }, label)];
  const box = Math.max(total, 90);
  return h("div", { class: "table", tabindex: "0", role: "region", "aria-label": "Picture of the plan" },
    s("svg", { class: "plan", viewBox: `0 ${(total - box) / 2} 680 ${box}`, role: "img", "aria-label": parts.map((each) => `${each.boxes} boxes on ${each.fields} in ${each.index}`).join("; ") },
      parts.map(lane), end(52, "rows"), end(628, "matches")));
}

/** The cuts of each axis as bars. */
export function drawAxes({ axes }) {
  const most = Math.max(...axes.map((each) => each.cuts));
  return h("ul", { class: "bars" }, axes.map((each) => h("li", {}, h("code", {}, each.name), h("meter", { min: 0, max: most, value: each.cuts, "aria-label": each.name }), h("span", { class: "number" }, plural(each.cuts, "cut")))));
}
