/**
 * The page that the address names: `#/sets/alerts/history?version=3`. A page is a module with
 * `show(place)`, which fills `place.main`. What it starts ends with `place.signal`.
 *
 * @typedef {{main: HTMLElement, params: Record<string, string>, query: Record<string, string>, signal: AbortSignal, session: any}} Place
 * @typedef {{path: string, title: string, load: () => Promise<{show: (place: Place) => any}>, label?: string, role?: string, wide?: boolean}} Page
 */

import { h, put } from "./element.js";
import { showError } from "./notice.js";

/** The address of a page. @param {string[]} parts @param {Record<string, any>} [query] */
export function hrefOf(parts, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

/** Go to a page. */
export function go(parts, query) {
  location.hash = hrefOf(parts, query);
}

/** Show the current page again, as after a change. */
export function reload() {
  dispatchEvent(new Event("reload"));
}

/** @param {Page[]} pages */
export function findPage(pages, hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const parts = path ? path.split("/") : [];
  for (const page of pages) {
    const params = match(page.path ? page.path.split("/") : [], parts);
    if (params) return { page, params, query: Object.fromEntries(new URLSearchParams(query)) };
  }
  return null;
}

function match(pattern, parts) {
  if (pattern.length !== parts.length) return null;
  const params = {};
  for (const [place, part] of pattern.entries()) {
    try {
      if (part.startsWith(":")) params[part.slice(1)] = decodeURIComponent(parts[place]);
      else if (part !== parts[place]) return null;
    } catch {
      return null; // not an encoded text
    }
  }
  return params;
}

/** Shows pages as the address changes. */
export class Router {
  /** @param {Page[]} pages @param {HTMLElement} main @param {(page: Page | null) => void} onPage */
  constructor(pages, main, onPage) {
    this.pages = pages;
    this.main = main;
    this.onPage = onPage;
    this.session = null;
    this.ends = new AbortController();
    addEventListener("reload", () => this.show());
    addEventListener("hashchange", () => {
      if (location.hash !== "#main") this.show({ focus: true });
    });
  }

  async show({ focus = false } = {}) {
    this.ends.abort();
    this.ends = new AbortController();
    const { signal } = this.ends;
    const found = findPage(this.pages, location.hash);
    this.onPage(found?.page ?? null);
    document.title = `${found?.page.title ?? "Not found"} – Vedette`;
    this.main.classList.toggle("wide", Boolean(found?.page.wide));
    this.main.setAttribute("aria-busy", "true");
    try {
      if (!found) {
        put(this.main, h("h1", {}, "No such page"), h("p", {}, h("a", { href: "#/" }, "Home")));
      } else {
        const module = await found.page.load();
        const place = h("div", { class: "stack" });
        await module.show({ main: place, params: found.params, query: found.query, signal, session: this.session });
        if (!signal.aborted) put(this.main, place);
      }
      if (!signal.aborted && focus) this.main.focus({ preventScroll: true });
      if (!signal.aborted && focus) scrollTo(0, 0);
    } catch (error) {
      if (!signal.aborted && error.name !== "AbortError") showError(this.main, error);
    } finally {
      if (!signal.aborted) this.main.removeAttribute("aria-busy");
    }
  }
}
