/** Drawing and editing of one zone: corners of a polygon, or the middle and the edge of a circle, as handles. */

const HANDLE = 14;

export class Drawing {
  /** @param {any} L @param {any} map @param {{onChange: (shape: any, isWhole: boolean) => void}} options */
  constructor(L, map, { onChange }) {
    this.L = L;
    this.map = map;
    this.onChange = onChange;
    this.layer = L.layerGroup().addTo(map);
    this.shape = null;
    this.isWhole = false;
    this.onClick = (event) => this.add(event.latlng);
  }

  /** Begin to draw a new zone. @param {"polygon" | "circle"} kind */
  begin(kind) {
    this.shape = kind === "circle" ? { kind, centre: null, radius: 0 } : { kind, points: [] };
    this.isWhole = false;
    this.map.on("click", this.onClick);
    this.map.getContainer().classList.add("drawing");
    this.show();
  }

  /** Edit a zone that exists. */
  edit(shape) {
    this.shape = shape;
    this.isWhole = true;
    this.show();
  }

  end() {
    this.map.off("click", this.onClick);
    this.map.getContainer().classList.remove("drawing");
    this.layer.clearLayers();
    this.shape = null;
  }

  add({ lng, lat }) {
    const { shape } = this;
    if (shape.kind === "polygon") {
      shape.points.push([lng, lat]);
      this.isWhole = shape.points.length > 2;
    } else if (!shape.centre) {
      shape.centre = [lng, lat];
    } else if (!this.isWhole) {
      shape.radius = this.map.distance([shape.centre[1], shape.centre[0]], [lat, lng]);
      this.isWhole = shape.radius > 0;
    }
    this.show();
  }

  show() {
    const { L, shape } = this;
    this.layer.clearLayers();
    const style = { className: "drawn", color: colour(), weight: 3, fillOpacity: 0.15, interactive: false };
    if (shape.kind === "polygon") {
      if (shape.points.length) L.polygon(shape.points.map(flip), style).addTo(this.layer);
      for (const point of shape.points) this.handle(point, (to) => point.splice(0, 2, ...to), "Corner");
    } else if (shape.centre) {
      const { centre } = shape;
      if (shape.radius) L.circle(flip(centre), { ...style, radius: shape.radius }).addTo(this.layer);
      this.handle(centre, (to) => centre.splice(0, 2, ...to), "Middle");
      if (this.isWhole) {
        this.handle(this.edge(), (to) => { shape.radius = this.map.distance(flip(centre), flip(to)); }, "Edge");
      }
    }
    this.onChange(shape, this.isWhole);
  }

  /** The point of a circle that is east of its middle. */
  edge() {
    const { centre, radius } = this.shape;
    return [centre[0] + radius / (111_320 * Math.max(0.01, Math.cos((centre[1] * Math.PI) / 180))), centre[1]];
  }

  handle(point, move, title) {
    const { L } = this;
    const icon = L.divIcon({ className: "handle", iconSize: [HANDLE, HANDLE] });
    const marker = L.marker(flip(point), { draggable: true, icon, title, alt: title, autoPan: true }).addTo(this.layer);
    marker.on("drag", () => {
      const { lng, lat } = marker.getLatLng();
      move([lng, lat]);
      this.redraw();
    });
    marker.on("dragend", () => this.show());
  }

  /** Follow a handle, without replacing the handles. */
  redraw() {
    this.layer.eachLayer((each) => {
      if (each.setRadius) {
        each.setLatLng(flip(this.shape.centre));
        each.setRadius(this.shape.radius);
      } else if (each.setLatLngs) {
        each.setLatLngs(this.shape.points.map(flip));
      }
    });
    this.onChange(this.shape, this.isWhole);
  }
}

const flip = ([lon, lat]) => [lat, lon];
const colour = () => getComputedStyle(document.documentElement).getPropertyValue("--series-4");
