/** Deliveries of events to webhooks, and dead letters. Of a receiver only the host is shown: its URL may have a secret. */

import { get, remove, setPath } from "../api.js";
import { LetterList } from "../dead-letters.js";
import { openDeliveryForm } from "../delivery-form.js";
import { confirm } from "../dialog.js";
import { h, put } from "../element.js";
import { count, moment } from "../format.js";
import { messageLine, notify } from "../notice.js";
import { hrefOf } from "../router.js";
import { redraw, table } from "../table.js";

const SECONDS = 5;

/** @param {import("../router.js").Place} place */
export async function show({ main, signal }) {
  const line = messageLine();
  const list = h("div", {});
  const letters = new LetterList(refresh);
  let shown = { sets: [], deliveries: [] };
  let reads = 0;

  async function refresh() {
    const read = ++reads;
    const found = await readAll(signal);
    const dead = await letters.read(signal);
    if (read !== reads) return; // a later one has been started
    shown = found;
    redraw(list, shown.deliveries, () => deliveryTable(shown.deliveries, refresh));
    letters.draw(dead, shown.deliveries.map((each) => `serve/${each.set}/${each.name}`));
    line.tell("");
  }

  async function refreshAgain() {
    if (!document.hidden) await refresh().catch((error) => signal.aborted || line.tell(error.message));
    if (!signal.aborted) setTimeout(refreshAgain, 1000 * SECONDS);
  }

  await refresh();
  setTimeout(refreshAgain, 1000 * SECONDS);
  const add = h("button", { type: "button", class: "main", disabled: !shown.sets.length, on: { click: () => openDeliveryForm({ ...shown, delivery: null, done: refresh }) } }, "New delivery");
  put(main, h("div", { class: "head" }, h("h1", {}, "Deliveries"), add), line,
    !shown.sets.length && h("p", { class: "notice" }, "Events of a set are delivered. Sets of kind match have none; create another one first."),
    h("section", { class: "card", "aria-label": "Deliveries" }, list), letters.element);
}

/** The sets that have events, and all their deliveries. */
async function readAll(signal) {
  const sets = (await get("/v1/status", {}, signal)).sets.filter((each) => each.kind !== "match").map((each) => each.name);
  return { sets, deliveries: (await Promise.all(sets.map((set) => readDeliveries(set, signal)))).flat() };
}

/** The deliveries of a set; none if the set was dropped meanwhile. */
async function readDeliveries(set, signal) {
  try {
    return (await get(setPath(set, "deliveries"), {}, signal)).map((each) => ({ set, ...each }));
  } catch (error) {
    if (error.status === 404) return [];
    throw error;
  }
}

function deliveryTable(deliveries, done) {
  const columns = [
    { label: "Set", cell: (each) => h("a", { href: hrefOf(["sets", each.set]) }, each.set) },
    { label: "Delivery", cell: (each) => each.name },
    { label: "To", cell: (each) => [hostOf(each.url), h("div", { class: "muted small" }, filterOf(each))] },
    { label: "Status", cell: (each) => statusOf(each.status) },
    ...["sent", "lag", "dead", "missed"].map((name) => ({ label: name[0].toUpperCase() + name.slice(1), class: "number", cell: (each) => count(each.status[name]) })),
    { label: "Change", cell: (each) => h("div", { class: "row" },
      h("button", { type: "button", "aria-label": `Edit ${each.name} of ${each.set}`, on: { click: () => openDeliveryForm({ sets: [each.set], deliveries, delivery: each, done }) } }, "Edit"),
      h("button", { type: "button", class: "danger", "aria-label": `Remove ${each.name} of ${each.set}`, on: { click: () => confirmRemoval(each, done) } }, "Remove")) },
  ];
  return table("Deliveries", columns, deliveries, "No delivery: events are in streams only.");
}

function statusOf(status) {
  const mark = status.failing_since ? h("span", { class: "mark bad" }, `failing since ${moment(status.failing_since)}`)
    : status.missed ? h("span", { class: "mark warn" }, "too slow")
      : status.lag ? h("span", { class: "mark accent" }, "sending") : h("span", { class: "mark good" }, "up to date");
  return [mark, status.last_error && h("div", { class: "muted small" }, status.failing_since ? status.last_error : `Last error: ${status.last_error}`)];
}

/** Which events it sends, in words. */
function filterOf(delivery) {
  const parts = ["query", "key", "owner"].filter((name) => delivery[name] !== null).map((name) => `${name} ${delivery[name]}`);
  return [delivery.events ? delivery.events.join(", ") : "all events", ...parts, delivery.secret_env ? "signed" : "not signed"].join(" · ");
}

function hostOf(url) {
  return URL.canParse(url) ? new URL(url).host : "?";
}

function confirmRemoval(delivery, done) {
  confirm({
    title: `Remove ${delivery.name}?`, label: "Remove delivery",
    text: `Events of ${delivery.set} are no longer sent to ${hostOf(delivery.url)}. Its dead letters stay.`,
    action: async () => {
      await remove(setPath(delivery.set, "deliveries", delivery.name));
      notify(`${delivery.name} is removed.`);
      await done();
    },
  });
}
