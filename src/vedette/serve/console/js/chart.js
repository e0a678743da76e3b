/** Charts of numbers by day or by another name: bars in SVG, with a table of the same numbers for screen readers. */

import { h, s } from "./element.js";
import { count } from "./format.js";

const WIDTH = 760;
const HEIGHT = 240;
const LEFT = 52;
const BOTTOM = 28;

/**
 * @param {{title: string, labels: string[], series: {name: string, values: number[]}[]}} options at most four series
 */
export function barChart({ title, labels, series }) {
  const most = Math.max(1, ...series.flatMap((each) => each.values));
  const top = niceTop(most);
  const inner = { width: WIDTH - LEFT - 8, height: HEIGHT - BOTTOM - 8 };
  const group = inner.width / Math.max(1, labels.length);
  const bar = Math.min(40, (0.8 * group) / series.length);
  const y = (value) => 8 + inner.height * (1 - value / top);
  const ticks = [0, top / 2, top];
  const every = Math.ceil(labels.length / 8);
  return h("figure", { class: "chart" },
    h("figcaption", { class: "row" }, h("strong", {}, title), series.map((each, rank) => h("span", { class: "small" }, h("span", { class: `key series-${rank + 1}` }), ` ${each.name}`))),
    s("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${title}: ${series.map((each) => `${each.name} ${count(each.values.reduce((sum, value) => sum + value, 0))}`).join(", ")}` },
      ticks.map((value) => [s("line", { class: "chart-line", x1: LEFT, x2: WIDTH - 8, y1: y(value), y2: y(value) }), s("text", { class: "chart-text", x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, count(value))]),
      labels.map((label, place) => {
        const middle = LEFT + group * (place + 0.5);
        return s("g", {},
          series.map((each, rank) => s("rect", { class: `series-${rank + 1}`, x: middle + bar * (rank - series.length / 2), y: y(each.values[place]), width: Math.max(1, bar - 1), height: Math.max(0, y(0) - y(each.values[place])) },
            s("title", {}, `${label}: ${count(each.values[place])} ${each.name}`))),
          place % every === 0 && s("text", { class: "chart-text", x: middle, y: HEIGHT - 8, "text-anchor": "middle" }, label));
      })));
}

/** The next number whose half is a whole number: 2, 4 or 10, times a power of ten. */
function niceTop(most) {
  const power = 10 ** Math.floor(Math.log10(most));
  return [2, 4, 10].map((each) => each * power).find((each) => each >= most);
}
