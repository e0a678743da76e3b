/** Which index answers which queries, and why. */

import { get, setPath } from "../api.js";
import { h, put } from "../element.js";
import { drawAxes, drawPlan, readPlan } from "../plan.js";
import { setHeader } from "../set-header.js";
import { table } from "../table.js";

/** @param {import("../router.js").Place} place */
export async function show({ main, params, signal, session }) {
  const set = await get(setPath(params.set), {}, signal);
  const { explanation } = await get(setPath(params.set, "explain"), {}, signal);
  const plan = readPlan(explanation);
  const columns = [
    { label: "Index", cell: (each) => h("strong", {}, each.index) },
    { label: "Fields", class: "text", cell: (each) => each.fields },
    { label: "Why this one", cell: (each) => each.why },
    { label: "Others, ns per row", cell: (each) => each.others },
  ];
  put(main, setHeader(set, "Plan", session),
    h("section", { class: "card", "aria-label": "Plan" }, h("h2", {}, "Plan"), h("p", { class: "muted" }, plan.title),
      plan.parts.length > 0 && [drawPlan(plan), table("Parts of the plan", columns, plan.parts)],
      plan.axes.length > 0 && [h("h3", {}, "Constants that queries compare a field with"), drawAxes(plan)],
      h("details", { open: !plan.parts.length }, h("summary", {}, "As text"), h("pre", {}, explanation))));
}
