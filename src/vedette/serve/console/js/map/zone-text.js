/** Zones as texts of queries. */

const digits = (value) => Number(value.toFixed(6));

/** The condition of a shape: {kind: "circle", centre, radius} or {kind: "polygon", points}; points are [lon, lat]. */
export function writeZone(shape, x, y) {
  const point = `ST_Point(${x}, ${y})`;
  if (shape.kind === "circle") {
    const [lon, lat] = shape.centre.map(digits);
    return `ST_DWithin(${point}, ST_Point(${lon}, ${lat}), ${Math.max(1, Math.round(shape.radius))}, TRUE)`;
  }
  const points = shape.points.map(([lon, lat]) => `${digits(lon)} ${digits(lat)}`);
  return `ST_Within(${point}, ST_GeomFromText('POLYGON ((${[...points, points[0]].join(", ")}))'))`;
}

/** The shape of a feature; null if it has holes or several parts, which the map shows and does not edit. */
export function shapeOf(feature) {
  const { kind, radius } = feature.properties;
  if (kind === "circle") return { kind, centre: [...feature.geometry.coordinates], radius };
  if (feature.geometry.type !== "Polygon" || feature.geometry.coordinates.length !== 1) return null;
  return { kind, points: feature.geometry.coordinates[0].slice(0, -1).map((each) => [...each]) };
}
