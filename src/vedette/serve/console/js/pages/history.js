/** The history of a set: what differs between two versions, and restore. */

import { get, post, setPath } from "../api.js";
import { confirm } from "../dialog.js";
import { diffLine } from "../diff.js";
import { h, put } from "../element.js";
import { field } from "../form.js";
import { count } from "../format.js";
import { messageLine, notify } from "../notice.js";
import { hrefOf, reload } from "../router.js";
import { may } from "../session.js";
import { setHeader } from "../set-header.js";

/** @param {import("../router.js").Place} place */
export async function show({ main, params, query, signal, session }) {
  const set = await get(setPath(params.set), {}, signal);
  const before = versionInput(set, query.before ?? Math.max(0, set.version - 1));
  const after = versionInput(set, query.after ?? set.version);
  const line = messageLine();
  const found = h("div", { class: "stack", "aria-live": "polite" });

  async function compare() {
    try {
      const diff = await get(setPath(set.name, "diff"), { before: before.value, after: after.value }, signal);
      line.tell("");
      put(found, diffList(set, diff));
    } catch (error) {
      line.tell(error.message);
    }
  }

  await compare();
  put(main, setHeader(set, "History", session),
    h("section", { class: "card", "aria-label": "Compare versions" }, h("h2", {}, "Compare versions"),
      h("form", { class: "stack", on: { submit: (event) => { event.preventDefault(); compare(); }, change: compare } },
        h("div", { class: "fields" }, field("Version", before), field("With version", after)),
        h("div", { class: "row" }, h("button", { type: "submit" }, "Compare"),
          may(session, "write") && !session.owner && h("button", { type: "button", on: { click: () => restore(set, before.value) } }, "Restore the first"))),
      line, found));
}

const versionInput = (set, value) => h("input", { type: "number", min: 0, max: set.version, value });

function diffList(set, diff) {
  if (!diff.queries.length) return h("p", { class: "empty" }, "The queries are the same.");
  return [h("ol", { class: "revisions" }, diff.queries.map((each) => h("li", { class: "stack" },
    h("div", {}, h("span", { class: `mark ${{ added: "good", removed: "bad", changed: "warn" }[each.change]}` }, each.change), " ",
      h("a", { href: hrefOf(["sets", set.name, "queries", String(each.id)]) }, String(each.id))),
    diffLine(each.before, each.after)))),
  diff.more > 0 && h("p", { class: "muted" }, `and ${count(diff.more)} more`)];
}

function restore(set, version) {
  confirm({
    title: `Restore version ${version}?`, label: "Restore",
    text: `All queries get the content that they had at version ${version}. This makes a new version, so it can be taken back.`,
    action: async () => {
      const made = await post(setPath(set.name, "restore"), { version: Number(version) });
      notify(`Restored as version ${made.version}.`);
      reload();
    },
  });
}
