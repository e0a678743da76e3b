/** Why an event happened: the row that caused it, clause by clause. */

import { post, setPath } from "./api.js";
import { openInfo } from "./dialog.js";
import { h } from "./element.js";
import { moment } from "./format.js";
import { notify } from "./notice.js";

/** The row of an event, as far as the monitor's `columns` carry it. */
function rowOf(event, monitor) {
  const row = { [monitor.key]: event.key, [monitor.time]: event.time };
  for (const name of monitor.columns ?? []) row[name] = event[name];
  return row;
}

/** Ask why, and show the answer. @param {string} set @param {any} event @param {any} monitor the monitor's options */
export async function showWhy(set, event, monitor) {
  try {
    const hasRow = (monitor.columns ?? []).length > 0;
    const given = hasRow ? { row: rowOf(event, monitor), now: event.time } : { key: event.key };
    const answer = await post(setPath(set, "why"), { query: event.query, ...given });
    const why = answer.last ?? answer;
    openInfo(`Why did ${event.key} ${event.event === "exit" ? "leave" : "enter"} ${event.query}?`,
      h("p", { class: "muted" }, `${moment(event.time)}${event.reason ? `, reason: ${event.reason}` : ""}`),
      h("ul", { class: "clauses" }, clauseLine(why.condition)),
      why.text && h("pre", { class: "small" }, why.text));
  } catch (error) {
    notify(error.message, "bad");
  }
}

function clauseLine(clause) {
  const mark = { true: "good", false: "warn" }[clause.truth] ?? "";
  return h("li", {},
    h("span", { class: `mark ${mark}` }, clause.truth), " ", h("code", {}, clause.clause),
    clause.detail && h("div", { class: "muted small" }, clause.detail),
    clause.clauses.length > 0 && h("ul", { class: "clauses" }, clause.clauses.map(clauseLine)));
}
