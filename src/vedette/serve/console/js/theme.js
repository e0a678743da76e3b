/** The theme: the system's, or the one that the person has chosen. Runs before the page is drawn. */

const KEY = "vedette-theme";
const prefersDark = matchMedia("(prefers-color-scheme: dark)");

/** @returns {"system" | "light" | "dark"} */
export function chosenTheme() {
  const kept = localStorage.getItem(KEY);
  return kept === "light" || kept === "dark" ? kept : "system";
}

/** @param {string} name system, light or dark */
export function chooseTheme(name) {
  if (name === "system") localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, name);
  apply();
}

function apply() {
  const chosen = chosenTheme();
  document.documentElement.dataset.theme = chosen === "system" ? (prefersDark.matches ? "dark" : "light") : chosen;
  document.dispatchEvent(new Event("theme"));
}

prefersDark.addEventListener("change", apply);
apply();
