/** Objects and zones as rectangles on one canvas. Those of pairs that intersect at the time are filled, with their ids. */

import { number } from "../format.js";
import { boundsOf, boxAt, isKnownAt, pairsAt } from "./motion.js";

const EDGE = { left: 58, right: 12, top: 12, bottom: 26 };
const LEAST = 5; // pixels of a side, so that points are seen
const MOST_LABELS = 60;

export class Scene {
  /** @param {HTMLCanvasElement} canvas its size is that of its style */
  constructor(canvas) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d");
    this.bounds = null;
    this.set([], [], []);
  }

  set(objects, zones, pairs, time = 0) {
    Object.assign(this, { objects, zones, pairs });
    // The view grows, and never shrinks while objects move in it. Nobody knows where those past their deadline are.
    this.bounds = boundsOf([this.bounds, ...zones, ...objects.filter((each) => isKnownAt(each, time)).map((each) => boxAt(each, time))]);
  }

  /** Draw the scene at a time, with the movement since `now`. @param {{a: any, b: any} | null} picked a pair to mark */
  draw(time, now, picked) {
    const { pen } = this;
    const { width, height } = this.fit();
    pen.clearRect(0, 0, width, height);
    if (!this.bounds) return;
    const style = getComputedStyle(this.canvas);
    const colour = (name) => style.getPropertyValue(name);
    pen.font = `12px ${colour("--font")}`;
    this.drawGrid(width, height, colour);
    pen.save();
    pen.beginPath();
    pen.rect(EDGE.left, EDGE.top, width - EDGE.left - EDGE.right, height - EDGE.top - EDGE.bottom);
    pen.clip();
    const meeting = pairsAt(this.pairs, time);
    const [inA, inB] = [new Set(meeting.map((each) => each.a)), new Set(meeting.map((each) => each.b))];
    const labels = [];
    for (const zone of this.zones) {
      const isIn = inB.has(zone.id);
      this.drawBox(zone, { line: colour("--series-2"), fill: colour(isIn ? "--series-2" : "--series-3"), alpha: isIn ? 0.35 : 0.1, wide: zone.id === picked?.b });
      if (isIn || zone.id === picked?.b) labels.push([zone, zone.id, true]);
    }
    for (const each of this.objects) {
      const box = boxAt(each, time);
      if (!box) continue;
      const isIn = inA.has(each.id);
      this.drawWay(boxAt(each, now), box, colour(isIn ? "--bad" : "--series-1"));
      this.drawBox(box, { line: colour(isIn ? "--bad" : "--series-1"), fill: colour(isIn ? "--bad" : "--series-1"), alpha: isKnownAt(each, time) ? 0.85 : 0.15, wide: each.id === picked?.a });
      if (isIn || each.id === picked?.a) labels.push([box, each.id]);
    }
    for (const [box, id, isZone] of labels.slice(0, MOST_LABELS)) this.drawLabel(box, String(id), isZone, colour);
    pen.restore();
  }

  /** Give the canvas the pixels of its place; returns its size. */
  fit() {
    const { canvas, pen } = this;
    const [width, height, ratio] = [canvas.clientWidth, canvas.clientHeight, devicePixelRatio || 1];
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    if (this.bounds) {
      const { x_low, x_high, y_low, y_high } = this.bounds;
      const [wide, high] = [width - EDGE.left - EDGE.right, height - EDGE.top - EDGE.bottom];
      const scale = 0.94 * Math.min(wide / Math.max(x_high - x_low, 1e-9), high / Math.max(y_high - y_low, 1e-9));
      const [middleX, middleY] = [(x_low + x_high) / 2, (y_low + y_high) / 2];
      this.x = (value) => EDGE.left + wide / 2 + (value - middleX) * scale;
      this.y = (value) => EDGE.top + high / 2 - (value - middleY) * scale;
      this.view = { x: [middleX - wide / 2 / scale, middleX + wide / 2 / scale], y: [middleY - high / 2 / scale, middleY + high / 2 / scale] };
    }
    return { width, height };
  }

  drawGrid(width, height, colour) {
    const { pen } = this;
    pen.strokeStyle = colour("--line");
    pen.fillStyle = colour("--muted");
    pen.lineWidth = 1;
    pen.beginPath();
    const step = roundStep((this.view.x[1] - this.view.x[0]) / (width / 110));
    for (const value of stepsOf(this.view.x, step)) {
      pen.moveTo(this.x(value), EDGE.top);
      pen.lineTo(this.x(value), height - EDGE.bottom);
      pen.textAlign = "center";
      pen.fillText(number(value), this.x(value), height - 8);
    }
    for (const value of stepsOf(this.view.y, step)) {
      pen.moveTo(EDGE.left, this.y(value));
      pen.lineTo(width - EDGE.right, this.y(value));
      pen.textAlign = "right";
      pen.fillText(number(value), EDGE.left - 6, this.y(value) + 4);
    }
    pen.stroke();
  }

  drawBox(box, { line, fill, alpha, wide }) {
    const { pen } = this;
    const [x, y, width, height] = this.place(box);
    pen.globalAlpha = alpha;
    pen.fillStyle = fill;
    pen.fillRect(x, y, width, height);
    pen.globalAlpha = Math.max(alpha, 0.6);
    pen.strokeStyle = line;
    pen.lineWidth = wide ? 4 : 1.25;
    pen.strokeRect(x, y, width, height);
    pen.globalAlpha = 1;
  }

  /** The way of an object from where it is now. */
  drawWay(from, to, line) {
    if (!from) return;
    const { pen } = this;
    const middle = (box) => [this.x((box.x_low + box.x_high) / 2), this.y((box.y_low + box.y_high) / 2)];
    pen.globalAlpha = 0.45;
    pen.strokeStyle = line;
    pen.lineWidth = 1.25;
    pen.beginPath();
    pen.moveTo(...middle(from));
    pen.lineTo(...middle(to));
    pen.stroke();
    pen.globalAlpha = 1;
  }

  drawLabel(box, text, isZone, colour) {
    const { pen } = this;
    const [x, y, width, height] = this.place(box);
    const [middle, base] = [x + width / 2, isZone ? y + height + 12 : y - 4];
    pen.textAlign = "center";
    pen.lineWidth = 3;
    pen.strokeStyle = colour("--card");
    pen.strokeText(text, middle, base);
    pen.fillStyle = colour(isZone ? "--muted" : "--text");
    pen.fillText(text, middle, base);
  }

  place({ x_low, x_high, y_low, y_high }) {
    const [wide, high] = [Math.max(LEAST, this.x(x_high) - this.x(x_low)), Math.max(LEAST, this.y(y_low) - this.y(y_high))];
    return [(this.x(x_low) + this.x(x_high) - wide) / 2, (this.y(y_low) + this.y(y_high) - high) / 2, wide, high];
  }
}

/** A round number that is not below another: 1, 2 or 5, times a power of ten. */
function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= least);
}

/** The multiples of a step within a range. */
function stepsOf([low, high], step) {
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.max(0, Math.floor(high / step) - first + 1) }, (_, place) => (first + place) * step);
}
