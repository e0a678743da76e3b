/** What a person should look at: errors first, then what may be a mistake. */

import { plural } from "./format.js";
import { hrefOf } from "./router.js";

/**
 * @param {any} status the answer of /v1/status
 * @param {any[]} pipelines the answer of /v1/pipelines
 * @returns {{kind: "bad" | "warn", text: string, href?: string, label?: string}[]}
 */
export function attention(status, pipelines) {
  const found = [];
  const say = (kind, text, href, label) => found.push({ kind, text, href, label });
  if (status.registry_error) say("bad", `The registry's database does not answer: ${status.registry_error}`);
  if (!status.ready) say("warn", "The service is starting or stopping.");
  for (const set of status.sets) {
    const href = hrefOf(["sets", set.name]);
    if (set.monitor_error) say("bad", `${set.name}: ${set.monitor_error}.`, href, "Open");
    if (set.parked) say("warn", `${set.name}: ${plural(set.parked, "query", "queries")} invalid since the schema changed.`, hrefOf(["sets", set.name], { state: "parked" }), "Show");
    if (set.waiting > 100) say("warn", `${set.name}: ${plural(set.waiting, "request")} waiting.`, href, "Open");
    if (set.broad) say("warn", `${set.name}: ${plural(set.broad, "query matches", "queries match")} more than a tenth of the recent rows.`, hrefOf(["sets", set.name, "plan"]), "Show the plan");
    if (set.late) say("warn", `${set.name}: ${plural(set.late, "late row")} dropped.`, href, "Open");
    if (set.kind === "border" && !set.monitored && set.queries) say("warn", `${set.name} has queries and no monitor, so rows cannot be sent to it.`, hrefOf(["sets", set.name, "rows"]), "Start monitoring");
  }
  for (const each of pipelines) {
    if (each.state === "lost" || each.state === "failed") say("bad", `Pipeline ${each.name} is ${each.state}. ${each.error ?? ""}`);
  }
  return found.sort((one, other) => Number(one.kind !== "bad") - Number(other.kind !== "bad"));
}
