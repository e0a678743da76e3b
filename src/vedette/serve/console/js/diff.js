/** What differs between two revisions of a query, word by word. */

import { h } from "./element.js";
import { plain } from "./format.js";

const IGNORED = new Set(["id", "state", "added", "removed", "created_at", "ended_at", "added_by", "removed_by"]);

/** @param {any} before a record, or null @param {any} after a record, or null */
export function diffLine(before, after) {
  const names = Object.keys({ ...before, ...after }).filter((name) => !IGNORED.has(name));
  const changed = names.filter((name) => plain(before?.[name]) !== plain(after?.[name]) && (plain(before?.[name]) + plain(after?.[name])).replace("{}", ""));
  if (!changed.length) return h("p", { class: "muted small" }, "The same content.");
  return h("dl", { class: "facts" }, changed.map((name) => [
    h("dt", {}, name === "where" ? "condition" : name.replaceAll("_", " ")), h("dd", { class: "mono" }, words(plain(before?.[name]), plain(after?.[name])))]));
}

/** Removed and added words of a text: what both begin and end with is the same. */
function words(before, after) {
  const [one, other] = [before, after].map((text) => text.match(/\s+|[\p{L}\p{N}_.]+|./gu) ?? []);
  let start = 0;
  while (start < one.length && start < other.length && one[start] === other[start]) start++;
  let end = 0;
  while (end < one.length - start && end < other.length - start && one.at(-1 - end) === other.at(-1 - end)) end++;
  const middle = (list) => list.slice(start, list.length - end).join("");
  return [one.slice(0, start).join(""), middle(one) && h("del", {}, middle(one)), middle(other) && h("ins", {}, middle(other)), end ? one.slice(-end).join("") : ""];
}
