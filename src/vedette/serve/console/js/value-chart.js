/** A line of values over time, with ranges behind it and marks on it, as SVG. */

import { put, s } from "./element.js";
import { number } from "./format.js";

const WIDTH = 900;
const HEIGHT = 340;
const LEFT = 62;
const BOTTOM = 26;
const TOP = 10;

/**
 * @param {SVGElement} svg
 * @param {{times: number[], values: number[], ranges: [number | null, number | null][], marks: {time: number, value: number, kind: string, title: string, onPick: () => void}[]}} data
 */
export function drawChart(svg, { times, values, ranges, marks }) {
  if (!values.length) {
    put(svg);
    return;
  }
  const [first, last] = [times[0], Math.max(times[times.length - 1], times[0] + 1000)];
  const [low, high] = spanOf(values);
  const x = (time) => LEFT + ((time - first) / (last - first)) * (WIDTH - LEFT - 8);
  const y = (value) => TOP + (1 - (value - low) / (high - low)) * (HEIGHT - TOP - BOTTOM);
  const inside = (value) => Math.min(HEIGHT - BOTTOM, Math.max(TOP, y(value)));
  const line = values.map((value, place) => `${place ? "L" : "M"}${x(times[place]).toFixed(1)} ${y(value).toFixed(1)}`).join("");
  put(svg,
    ranges.map(([from, to]) => {
      const [top, bottom] = [inside(to ?? high), inside(from ?? low)];
      return s("rect", { class: "range", x: LEFT, y: top, width: WIDTH - LEFT - 8, height: Math.max(1, bottom - top) });
    }),
    stepsOf(low, high).map((value) => [
      s("line", { class: "grid", x1: LEFT, x2: WIDTH - 8, y1: y(value), y2: y(value) }),
      s("text", { class: "label", x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, number(value)),
    ]),
    [0, 0.5, 1].map((share) => s("text", { class: "label", x: LEFT + share * (WIDTH - LEFT - 8), y: HEIGHT - 6, "text-anchor": share === 0 ? "start" : share === 1 ? "end" : "middle" },
      new Date(first + share * (last - first)).toLocaleTimeString("en-GB"))),
    s("path", { class: "line", d: line }),
    marks.filter((each) => each.time >= first && each.time <= last).map((each) =>
      s("circle", { class: `event ${each.kind}`, cx: x(each.time), cy: inside(each.value), r: 6, on: { click: each.onPick } }, s("title", {}, each.title))));
}

export const VIEW_BOX = `0 0 ${WIDTH} ${HEIGHT}`;

function spanOf(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) [low, high] = [Math.min(low, value), Math.max(high, value)];
  const room = (high - low) * 0.12 || Math.abs(high) * 0.05 || 1;
  return [low - room, high + room];
}

/** Round values between two others, about five. */
function stepsOf(low, high) {
  const rough = (high - low) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
  const steps = [];
  for (let value = Math.ceil(low / step) * step; value <= high; value += step) steps.push(value);
  return steps;
}
