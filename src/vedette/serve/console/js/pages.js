/** All pages. Those with a label are in the navigation, for people with the role. Each is loaded when it is opened. */

/** @type {(import("./router.js").Page & {under?: string})[]} */
export const PAGES = [
  { path: "", title: "Home", label: "Home", load: () => import("./pages/home.js") },
];
