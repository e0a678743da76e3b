/** Tokens and roles: who may use the service. A new token is shown once. */

import { get, post, remove } from "../api.js";
import { confirm, openForm, openInfo } from "../dialog.js";
import { h, put } from "../element.js";
import { choice, field, textInput } from "../form.js";
import { moment } from "../format.js";
import { notify } from "../notice.js";
import { reload } from "../router.js";
import { signIn } from "../session.js";
import { table } from "../table.js";

const ROLES = [["read", "read: see and ask"], ["write", "write: also change queries and send rows"], ["admin", "admin: also sets, monitors and tokens"]];

/** @param {import("../router.js").Place} place */
export async function show({ main, signal, session }) {
  const tokens = await get("/v1/tokens", {}, signal);
  const columns = [
    { label: "Name", cell: (each) => each.name },
    { label: "Role", cell: (each) => h("span", { class: "mark accent" }, each.role) },
    { label: "Confined to", cell: (each) => [each.sets && `sets ${each.sets.join(", ")}`, each.owner && `owner ${each.owner}`].filter(Boolean).join("; ") || "–" },
    { label: "Created", cell: (each) => moment(each.created_at) },
    { label: "Ends", cell: (each) => (each.expires_at ? moment(each.expires_at) : "never") },
    { label: "State", cell: (each) => stateOf(each, session) },
  ];
  put(main, h("div", { class: "head" }, h("h1", {}, "Tokens"), h("button", { type: "button", class: "main", on: { click: () => openNewToken(session) } }, "New token")),
    !tokens.length && h("p", { class: "notice" }, "There is no token: everybody on this machine is an admin, and nobody else can connect. Once there is one, every request needs a token, for ever."),
    h("section", { class: "card", "aria-label": "Tokens" }, table("Tokens", columns, tokens.toReversed(), "No token.")));
}

function stateOf(token, session) {
  if (token.revoked_at) return h("span", { class: "mark bad" }, "revoked");
  if (token.expires_at && new Date(token.expires_at) < new Date()) return h("span", { class: "mark warn" }, "expired");
  return h("div", { class: "row" }, h("span", { class: "mark good" }, token.id === session.token ? "yours" : "active"),
    h("button", { type: "button", class: "danger", "aria-label": `Revoke ${token.name}`, on: { click: () => confirm({
      title: `Revoke ${token.name}?`, label: "Revoke token",
      text: `It can never be used again${token.id === session.token ? ", and you are signed out" : ""}.`,
      action: async () => {
        await remove(`/v1/tokens/${encodeURIComponent(token.id)}`);
        notify(`${token.name} is revoked.`);
        reload();
      },
    }) } }, "Revoke"));
}

function openNewToken(session) {
  const name = textInput({ required: true });
  const role = choice(ROLES, session.token ? "read" : "admin");
  const sets = textInput({ placeholder: "all" });
  const owner = textInput({ placeholder: "all" });
  const ttl = textInput({ placeholder: "never" });
  openForm({
    title: "New token",
    body: [
      !session.token && h("p", { class: "notice warn" }, "From the first token on, every request needs one. Make it an admin, and keep it."),
      field("Name", name, { hint: "Histories name it as the author of changes" }), field("Role", role),
      h("div", { class: "fields" }, field("Only sets", sets, { hint: "Names with commas" }), field("Only queries of owner", owner), field("Ends after", ttl, { hint: "Such as 30 days" })),
    ],
    saveLabel: "Create token",
    save: async () => {
      const chosen = sets.value.split(",").map((each) => each.trim()).filter(Boolean);
      const made = await post("/v1/tokens", { name: name.value, role: role.value, sets: chosen.length ? chosen : null, owner: owner.value || null, ttl: ttl.value || null });
      showOnce(made, session);
    },
  });
}

function showOnce(made, session) {
  const text = textInput({ value: made.token, readonly: true, class: "mono" });
  const dialog = openInfo(`Token of ${made.name}`, h("p", {}, "Copy it now. It is not shown again."), field("Token", text),
    h("div", { class: "row" }, h("button", { type: "button", on: { click: async () => {
      await navigator.clipboard.writeText(made.token).then(() => notify("Copied."), () => text.select());
    } } }, "Copy")));
  text.select();
  dialog.addEventListener("close", async () => {
    text.value = "";
    if (session.token) reload();
    else document.dispatchEvent(new CustomEvent("signed-in", { detail: await signIn(made.token) })); // requests need a token from now on
  });
}
