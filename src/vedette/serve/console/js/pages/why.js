/** Why a row matches a query, or why a key is inside one. */

import { get, post, setPath } from "../api.js";
import { h, put } from "../element.js";
import { choice, field, textInput } from "../form.js";
import { moment } from "../format.js";
import { hrefOf } from "../router.js";
import { rowForm } from "../row-form.js";
import { truthTree } from "../truth-tree.js";

/** @param {import("../router.js").Place} place */
export async function show({ main, query, signal }) {
  const sets = (await get("/v1/status", {}, signal)).sets.filter((each) => ["match", "border", "window join"].includes(each.kind));
  const set = choice(sets.map((each) => each.name), query.set);
  const id = textInput({ required: true, value: query.query ?? "" });
  const key = textInput({ value: query.key ?? "" });
  const rest = h("div", { class: "stack" });
  const answer = h("section", { class: "card", "aria-label": "Answer", "aria-live": "polite", hidden: true });
  let form = null;
  const hasKeys = () => sets.some((each) => each.name === set.value && each.kind === "border" && each.monitored);

  async function drawRow() {
    const record = await get(setPath(set.value), {}, signal);
    const monitored = hasKeys();
    form = rowForm(record.schema, query.row ? JSON.parse(query.row) : {});
    if (!query.row) for (const each of form.inputs) each.input.value = "";
    put(rest, monitored && field("Key", key, { hint: "Explains its last row. With values below: the move to them." }), h("fieldset", {}, h("legend", {}, monitored ? "Row (optional with a key)" : record.kind === "window join" ? "A row of each stream" : "Row"), form.element));
    return record;
  }

  async function ask() {
    try {
      const record = await get(setPath(set.value), {}, signal);
      const row = form.read();
      const hasRow = form.inputs.some((each) => each.input.value !== "");
      const body = { query: record.ids === "integer" ? Number(id.value) : id.value };
      if (key.value && hasKeys()) body.key = key.value;
      if (hasRow || body.key === undefined) body.row = row;
      draw(answer, record, body, await post(setPath(record.name, "why"), body));
    } catch (error) {
      put(answer, h("p", { class: "notice bad" }, error.message));
    }
    answer.hidden = false;
  }

  put(main, h("h1", {}, "Why?"), sets.length ? h("form", { class: "card", on: { submit: (event) => { event.preventDefault(); ask(); } } },
    h("div", { class: "fields" }, field("Set", set), field("Query", id)), rest, h("div", { class: "row" }, h("button", { class: "main", type: "submit" }, "Explain")))
    : h("p", { class: "empty" }, "There is no set with conditions yet."), answer);
  if (!sets.length) return;
  set.addEventListener("change", drawRow);
  await drawRow();
  if (query.query && (query.key || query.row)) await ask();
}

function draw(answer, set, body, why) {
  const link = h("a", { href: hrefOf(["sets", set.name, "queries", String(body.query)]) }, String(body.query));
  if (body.key === undefined) {
    const [yes, no] = set.kind === "window join" ? ["The rows match ", "The rows do not match "] : ["The row matches ", "The row does not match "];
    put(answer, h("h2", {}, why.holds ? yes : no, link), explained(why));
    return;
  }
  put(answer, h("h2", {}, why.holds ? `${why.key} is inside ` : `${why.key} is not inside `, link), facts(why),
    h("h3", {}, `Its last row${why.time ? `, at ${moment(why.time)}` : ""}`), explained(why.last),
    why.next && [h("h3", {}, { enter: "The next row: the key enters", exit: "The next row: the key leaves" }[why.move] ?? "The next row: no event"), explained(why.next)]);
}

/** The condition and the truth of its clauses. */
function explained(why) {
  return [h("pre", {}, why.text), why.condition && truthTree(why.condition)];
}

const FACTS = [["pending_since", "Inside since"], ["enters_at", "Enter is reported at"], ["lingering_since", "Outside, within the margin, since"],
  ["expires_at", "Leaves without another row at"], ["reported_at", "Reported at"], ["cooling_until", "Held back until"]];

function facts(why) {
  const known = FACTS.filter(([name]) => why[name]);
  return known.length > 0 && h("dl", { class: "facts" }, known.map(([name, label]) => [h("dt", {}, label), h("dd", {}, moment(why[name]))]));
}
