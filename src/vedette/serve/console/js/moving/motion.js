/** Where moving objects are at a time, which pairs intersect then, and the time of a monitor between two answers. */

/** @typedef {{x_low: number, x_high: number, y_low: number, y_high: number}} Box */

/** The box of an object at a time. A zone, which has no speeds, stays. @returns {Box | null} null if it has vanished */
export function boxAt(each, time) {
  if (each.vx_low === undefined) return each;
  const passed = time - each.time;
  const [x_low, x_high] = [each.x_low + each.vx_low * passed, each.x_high + each.vx_high * passed];
  const [y_low, y_high] = [each.y_low + each.vy_low * passed, each.y_high + each.vy_high * passed];
  return x_low <= x_high && y_low <= y_high ? { x_low, x_high, y_low, y_high } : null;
}

/** Whether the motion of an object is still used at a time. */
export const isKnownAt = (each, time) => each.until === null || each.until === undefined || time <= each.until;

export const pairsAt = (pairs, time) => pairs.filter((each) => each.start <= time && time <= each.end);

/** The smallest box around some others; null if there is none. @param {(Box | null)[]} boxes @returns {Box | null} */
export function boundsOf(boxes) {
  let found = null;
  for (const each of boxes) {
    if (!each) continue;
    found ??= { x_low: Infinity, x_high: -Infinity, y_low: Infinity, y_high: -Infinity };
    found = {
      x_low: Math.min(found.x_low, each.x_low), x_high: Math.max(found.x_high, each.x_high),
      y_low: Math.min(found.y_low, each.y_low), y_high: Math.max(found.y_high, each.y_high),
    };
  }
  return found;
}

const LONGEST = 2000; // milliseconds that time runs on without an answer

/** The time of a monitor: as last answered, and between two answers as fast as between those before. */
export class Clock {
  constructor() {
    this.time = null;
    this.since = 0;
    this.speed = 0; // per millisecond
  }

  note(time, now) {
    if (this.time !== null && now > this.since) this.speed = Math.max(0, (time - this.time) / (now - this.since));
    [this.time, this.since] = [time, now];
  }

  at(now) {
    return this.time + this.speed * Math.min(now - this.since, LONGEST);
  }
}
