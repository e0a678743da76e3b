/** The top of all pages of a set: its name, its facts, and links to its parts. */

import { remove, setPath } from "./api.js";
import { confirm } from "./dialog.js";
import { h } from "./element.js";
import { plural } from "./format.js";
import { notify } from "./notice.js";
import { go, hrefOf, reload } from "./router.js";
import { openAlterSet } from "./set-form.js";
import { may } from "./session.js";

const TABS = [["Queries", []], ["Rows and events", ["rows"]], ["Plan", ["plan"]], ["History", ["history"]]];

/** @param {any} set its record @param {string} tab the label of the part that is shown @param {any} session */
export function setHeader(set, tab, session) {
  return [
    h("div", { class: "head" }, h("h1", {}, set.name), may(session, "admin") && h("div", { class: "row" },
      set.schema && h("button", { type: "button", on: { click: () => openAlterSet(set, reload) } }, "Change"),
      h("button", { type: "button", class: "danger", on: { click: () => drop(set) } }, "Drop"))),
    h("p", { class: "muted" }, `${set.kind} · ${plural(set.queries, "query", "queries")} · version ${set.version} · ${set.time_zone}`),
    h("nav", { class: "tabs", "aria-label": "Parts of the set" }, TABS.map(([label, parts]) =>
      h("a", { href: hrefOf(["sets", set.name, ...parts]), "aria-current": label === tab && "page" }, label))),
  ];
}

function drop(set) {
  confirm({
    title: `Drop ${set.name}?`, label: "Drop set",
    text: `Its ${plural(set.queries, "query", "queries")}, its history and the state of its monitor are deleted. This cannot be taken back.`,
    action: async () => {
      await remove(setPath(set.name));
      notify(`Set ${set.name} is dropped.`);
      go([]);
    },
  });
}
