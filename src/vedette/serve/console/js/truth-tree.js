/** Why: the clauses of a condition as a tree, each with its truth and the values that decide it. */

import { h } from "./element.js";

const MARKS = { true: ["good", "true"], false: ["bad", "false"], null: ["warn", "null"], unknown: ["warn", "unknown"] };

/** @param {any} clause {clause, truth, detail, clauses} */
export function truthTree(clause) {
  return h("ul", { class: "tree" }, node(clause));
}

function node(clause) {
  const [kind, word] = MARKS[clause.truth] ?? ["", clause.truth];
  return h("li", {},
    h("div", { class: "tree-line" }, h("span", { class: `mark ${kind}` }, word), h("code", {}, clause.clause), clause.detail && h("span", { class: "muted small" }, clause.detail)),
    clause.clauses.length > 0 && h("ul", {}, clause.clauses.map(node)));
}
