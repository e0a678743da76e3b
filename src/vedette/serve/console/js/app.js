/** Starts the console: who is signed in, then the page that the address names. */

import { drawNavigation, markPage } from "./navigation.js";
import { showError } from "./notice.js";
import { PAGES } from "./pages.js";
import { Router } from "./router.js";
import { readSession, signOut } from "./session.js";
import { showSignIn } from "./sign-in.js";

const main = document.getElementById("main");
const router = new Router(PAGES, main, markPage);

async function start() {
  try {
    const session = await readSession();
    if (session) begin(session);
  } catch (error) {
    showError(main, error);
  }
}

function begin(session) {
  router.session = session;
  drawNavigation(PAGES, session, leave);
  router.show();
}

async function leave() {
  try {
    await signOut();
  } finally {
    askToSignIn();
  }
}

function askToSignIn(reason = "") {
  router.ends.abort();
  router.session = null;
  drawNavigation(PAGES, null, leave);
  showSignIn(main, reason, begin);
}

document.addEventListener("signed-out", (event) => askToSignIn(router.session ? event.detail.message : ""));
document.addEventListener("signed-in", (event) => begin(event.detail));
start();
