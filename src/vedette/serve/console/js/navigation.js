/** The list of pages, who is signed in, and the theme. */

import { h, put } from "./element.js";
import { choice, field } from "./form.js";
import { may } from "./session.js";
import { chooseTheme, chosenTheme } from "./theme.js";

const nav = document.getElementById("navigation");
const menu = document.getElementById("menu");

/** @param {import("./router.js").Page[]} pages @param {any} session @param {() => void} onSignOut */
export function drawNavigation(pages, session, onSignOut) {
  const listed = session ? pages.filter((page) => page.label && may(session, page.role ?? "read")) : [];
  const theme = choice([["system", "System"], ["light", "Light"], ["dark", "Dark"]], chosenTheme(), {
    on: { change: (event) => chooseTheme(event.target.value) },
  });
  put(nav,
    h("ul", {}, listed.map((page) => h("li", {}, h("a", { href: `#/${page.path}`, "data-page": page.path }, page.label)))),
    h("div", { class: "who" },
      session?.token && h("div", {}, h("div", {}, session.name.replace(/ \([0-9a-f]+\)$/, "")), h("div", { class: "muted" }, `role ${session.role}`)),
      session && !session.token && h("div", { class: "muted" }, "Local, without tokens"),
      field("Theme", theme),
      session?.token && h("button", { type: "button", on: { click: onSignOut } }, "Sign out")));
}

/** Mark the page that is shown. */
export function markPage(page) {
  closeMenu();
  for (const link of nav.querySelectorAll("a")) {
    const own = link.dataset.page;
    const isShown = page && (page.under ?? page.path) === own;
    if (isShown) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

function closeMenu() {
  nav.classList.remove("open");
  menu.setAttribute("aria-expanded", "false");
}

menu.addEventListener("click", () => {
  const isOpen = nav.classList.toggle("open");
  menu.setAttribute("aria-expanded", String(isOpen));
});
