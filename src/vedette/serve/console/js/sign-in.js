/** The form that asks for a token. */

import { h, put } from "./element.js";
import { field } from "./form.js";
import { messageLine } from "./notice.js";
import { signIn } from "./session.js";

/** @param {HTMLElement} main @param {string} reason why it is asked for @param {(session: any) => void} done */
export function showSignIn(main, reason, done) {
  if (main.querySelector(".sign-in")) {
    if (reason) main.querySelector("[role=alert]").tell(reason);
    return;
  }
  document.title = "Sign in – Vedette";
  const line = messageLine();
  const input = h("input", { type: "password", name: "token", autocomplete: "current-password", required: true, spellcheck: "false" });
  const form = h("form", { class: "card sign-in", on: { submit } },
    h("h1", {}, "Sign in"), line,
    field("Token", input, { hint: "It begins with vdt_. An admin creates it: vedette serve token create NAME --role write" }),
    h("button", { class: "main", type: "submit" }, "Sign in"));

  async function submit(event) {
    event.preventDefault();
    const token = input.value;
    input.value = "";
    try {
      done(await signIn(token));
    } catch (error) {
      line.tell(error.message);
      input.focus();
    }
  }

  put(main, form);
  main.removeAttribute("aria-busy");
  if (reason) line.tell(reason);
  input.focus();
}
