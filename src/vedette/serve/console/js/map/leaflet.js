/** Leaflet, as its package brings it: one script that sets `L`, and a style sheet. Both are loaded with the first map. */

import { h } from "../element.js";

let loading = null;

/** @returns {Promise<any>} Leaflet */
export function loadLeaflet() {
  loading ??= Promise.all([loadStyle("/console/leaflet/leaflet.css"), import("/console/leaflet/leaflet.js")]).then(
    () => globalThis.L,
    () => {
      loading = null;
      throw new Error("The map needs Leaflet: pip install 'vedette[serve]' on the machine of the service.");
    },
  );
  return loading;
}

function loadStyle(href) {
  return new Promise((resolve, reject) => {
    const link = h("link", { rel: "stylesheet", href, on: { load: resolve, error: reject } });
    document.head.prepend(link);
  });
}

/** A map with the outline of the land, or with the tiles of the service's options. */
export async function makeMap(L, place, tiles) {
  const map = L.map(place, { preferCanvas: true, worldCopyJump: true, zoomAnimation: false, minZoom: 2, maxZoom: 19, attributionControl: false, doubleClickZoom: false });
  map.setView([48.5, 8], 5);
  if (tiles) {
    L.tileLayer(tiles, { maxZoom: 19 }).addTo(map);
  } else {
    const outline = await (await fetch("/console/world.json")).json();
    const pane = map.createPane("land");
    pane.style.zIndex = "150";
    L.geoJSON(outline, { pane: "land", interactive: false, renderer: L.canvas({ pane: "land", padding: 0.5 }), style: landStyle() }).addTo(map);
  }
  return map;
}

function landStyle() {
  const style = getComputedStyle(document.documentElement);
  return { color: style.getPropertyValue("--line-strong"), weight: 1, fillColor: style.getPropertyValue("--land"), fillOpacity: 1 };
}
