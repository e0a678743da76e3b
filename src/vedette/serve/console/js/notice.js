/** Short messages: in a page, or at the corner for some seconds. Screen readers read them out. */

import { h, put } from "./element.js";

/** @param {string} text @param {"" | "good" | "bad" | "warn"} [kind] */
export function notify(text, kind = "good") {
  const made = h("div", { class: `notice ${kind}` }, text);
  document.getElementById("notices").append(made);
  setTimeout(() => made.remove(), kind === "bad" ? 10_000 : 5_000);
}

/** A page that cannot be shown. */
export function showError(place, error) {
  console.debug(error);
  put(place, h("h1", {}, "This did not work"), h("p", { class: "notice bad", role: "alert" }, error.message), h("p", {}, h("a", { href: "#/" }, "Home")));
}

/** A message in a page, which is empty until it is told something. @returns {HTMLElement & {tell: (text: string, kind?: string) => void}} */
export function messageLine() {
  const line = h("p", { role: "alert", hidden: true });
  line.tell = (text, kind = "bad") => {
    line.hidden = !text;
    line.className = `notice ${kind}`;
    line.textContent = text;
  };
  return line;
}
