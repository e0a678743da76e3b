/** Keys as dots on one canvas. They glide from one report to the next, so that they move at every frame. */

const GLIDE = 1000; // milliseconds from the old place to the new one
const FLASH = 1500; // milliseconds that a key is marked after an event
const NEAR = 12; // pixels from a key that a click may be

export class KeyLayer {
  constructor(L, map, { onPick }) {
    this.map = map;
    this.keys = new Map(); // by key: x, y (from), toX, toY, since, flash
    this.flashes = new Map();
    this.n_frames = 0;
    this.canvas = L.DomUtil.create("canvas", "key-canvas", map.getContainer());
    this.canvas.setAttribute("aria-hidden", "true");
    this.pen = this.canvas.getContext("2d");
    this.isOver = false;
    map.on("click", (event) => {
      const found = this.find(event.containerPoint);
      if (found !== null) onPick(found, event.latlng);
    });
    const draw = () => {
      if (this.isOver) return;
      this.draw(performance.now());
      requestAnimationFrame(draw);
    };
    requestAnimationFrame(draw);
  }

  /** New places of keys. @param {{keys: any[], fields: any, gone: any[], again: boolean}} message */
  update({ keys, fields, gone, again }, xField, yField) {
    const now = performance.now();
    if (again) this.keys.clear();
    for (const key of gone) this.keys.delete(key);
    const xs = fields[xField];
    const ys = fields[yField];
    for (let place = 0; place < keys.length; place++) {
      const x = xs[place];
      const y = ys[place];
      if (x === null || y === null) continue;
      const known = this.keys.get(keys[place]);
      if (known) {
        const [atX, atY] = placeOf(known, now);
        Object.assign(known, { x: atX, y: atY, toX: x, toY: y, since: now });
      } else {
        this.keys.set(keys[place], { x, y, toX: x, toY: y, since: now });
      }
    }
  }

  flash(key, kind) {
    this.flashes.set(key, { kind, until: performance.now() + FLASH });
  }

  /** The key near a point of the map, or null. */
  find(point) {
    const now = performance.now();
    let best = null;
    let least = NEAR * NEAR;
    for (const [key, each] of this.keys) {
      const at = this.project(...placeOf(each, now));
      const far = (at.x - point.x) ** 2 + (at.y - point.y) ** 2;
      if (far < least) [best, least] = [key, far];
    }
    return best;
  }

  project(x, y) {
    return this.map.latLngToContainerPoint([y, x]);
  }

  draw(now) {
    const { canvas, pen } = this;
    const size = this.map.getSize();
    const ratio = devicePixelRatio || 1;
    if (canvas.width !== size.x * ratio || canvas.height !== size.y * ratio) {
      canvas.width = size.x * ratio;
      canvas.height = size.y * ratio;
      canvas.style.width = `${size.x}px`;
      canvas.style.height = `${size.y}px`;
    }
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, size.x, size.y);
    const style = getComputedStyle(canvas);
    pen.fillStyle = style.color;
    // A map's place is linear in longitude and in the projected latitude: two projections give all the others.
    const scale = this.map.options.crs.scale(this.map.getZoom());
    const origin = this.map.getPixelOrigin();
    const pane = this.map.containerPointToLayerPoint([0, 0]);
    const half = scale / 2;
    pen.beginPath();
    for (const [key, each] of this.keys) {
      const [lon, lat] = placeOf(each, now);
      const sine = Math.sin((lat * Math.PI) / 180);
      const x = (lon / 180) * half + half - origin.x - pane.x;
      const y = half - (Math.log((1 + sine) / (1 - sine)) / (2 * Math.PI)) * half - origin.y - pane.y;
      if (x < -9 || y < -9 || x > size.x + 9 || y > size.y + 9) continue;
      pen.moveTo(x + 4, y);
      pen.arc(x, y, 4, 0, 7);
      const flash = this.flashes.get(key);
      if (flash) this.ring(pen, x, y, flash, now, key, style);
    }
    pen.fill();
    this.n_frames++;
  }

  ring(pen, x, y, { kind, until }, now, key, style) {
    if (now > until) {
      this.flashes.delete(key);
      return;
    }
    const share = 1 - (until - now) / FLASH;
    const colour = kind === "enter" ? style.getPropertyValue("--good") : style.getPropertyValue("--warn");
    pen.save();
    const ring = new Path2D();
    ring.arc(x, y, 6 + 14 * share, 0, 7);
    pen.strokeStyle = colour;
    pen.globalAlpha = 1 - share;
    pen.lineWidth = 3;
    pen.stroke(ring);
    pen.restore();
  }

  end() {
    this.isOver = true;
  }
}

/** Where a key is on its way. */
function placeOf(each, now) {
  const share = Math.min(1, (now - each.since) / GLIDE);
  return [each.x + share * (each.toX - each.x), each.y + share * (each.toY - each.y)];
}
