/** All pages. Those with a label are in the navigation, for people with the role. Each is loaded when it is opened. */

/** @type {(import("./router.js").Page & {under?: string})[]} `under`: the page of the navigation that it belongs to */
export const PAGES = [
  { path: "", title: "Home", label: "Home", load: () => import("./pages/home.js") },
  { path: "sets/:set", title: "Set", under: "", load: () => import("./pages/set.js") },
  { path: "sets/:set/rows", title: "Rows and events", under: "", load: () => import("./pages/rows.js") },
  { path: "sets/:set/plan", title: "Plan", under: "", load: () => import("./pages/plan.js") },
  { path: "sets/:set/history", title: "History", under: "", load: () => import("./pages/history.js") },
  { path: "sets/:set/queries/:id", title: "Query", under: "", load: () => import("./pages/query.js") },
  { path: "why", title: "Why", label: "Why", load: () => import("./pages/why.js") },
  { path: "backtest", title: "Backtest", label: "Backtest", load: () => import("./pages/backtest.js") },
  { path: "deliveries", title: "Deliveries", label: "Deliveries", role: "admin", load: () => import("./pages/deliveries.js") },
  { path: "tokens", title: "Tokens", label: "Tokens", role: "admin", load: () => import("./pages/tokens.js") },
  { path: "map", title: "Map", label: "Map", wide: true, load: () => import("./pages/map.js") },
  { path: "moving", title: "Moving objects", label: "Moving objects", wide: true, load: () => import("./pages/moving.js") },
  { path: "values", title: "Values", label: "Values", load: () => import("./pages/values.js") },
];
