/** The sets that have keys, and what a page needs to know of one: its numeric fields and its monitor. */

import { get, getIfAny, setPath } from "./api.js";

const NUMERIC = /(\w+)\s+(?:double|float|decimal|bigint|int|smallint|tinyint)\b/gi;

/** The names of monitored sets; the wanted one first if it is among them. */
export async function monitoredSets(signal) {
  const { sets, tiles } = await get("/v1/status", {}, signal);
  return { sets: sets.filter((each) => each.kind === "border"), tiles };
}

/** @param {{name: string, monitored: boolean}} status of the set, as /v1/status has it @param {AbortSignal} signal */
export async function readSet({ name, monitored }, signal) {
  const [info, monitor] = await Promise.all([get(setPath(name), {}, signal), monitored ? getIfAny(setPath(name, "monitor"), {}, signal) : null]);
  const fields = [...String(info.schema).matchAll(NUMERIC)].map((found) => found[1]);
  return { info, monitor, fields };
}

/** The fields of a place, by their usual names; null if the set has none. */
export function placeFields(fields) {
  const named = (...names) => fields.find((each) => names.includes(each.toLowerCase()));
  const x = named("lon", "longitude", "lng", "x");
  const y = named("lat", "latitude", "y");
  return x && y ? { x, y } : null;
}
