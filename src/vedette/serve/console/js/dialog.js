/** Dialogs: the browser's own, which keep the focus and close with Escape. */

import { h } from "./element.js";
import { messageLine } from "./notice.js";

/**
 * A form in a dialog. It closes when `save` has succeeded; else it shows the error.
 * @param {{title: string, body: any, saveLabel: string, save: () => Promise<any>, danger?: boolean, cancelLabel?: string}} options
 * @returns {HTMLDialogElement}
 */
export function openForm({ title, body, saveLabel, save, danger = false, cancelLabel = "Cancel" }) {
  const line = messageLine();
  const button = h("button", { class: danger ? "danger" : "main", type: "submit" }, saveLabel);
  const form = h("form", { method: "dialog", on: { submit: onSubmit } },
    h("h2", { id: "dialog-title" }, title), body, line,
    h("div", { class: "actions" }, h("button", { type: "button", on: { click: () => dialog.close() } }, cancelLabel), button));
  const dialog = h("dialog", { "aria-labelledby": "dialog-title" }, form);

  async function onSubmit(event) {
    event.preventDefault();
    button.disabled = true;
    try {
      await save();
      dialog.close();
    } catch (error) {
      line.tell(error.message);
    } finally {
      button.disabled = false;
    }
  }

  return open(dialog);
}

/** Ask before something that cannot be taken back. */
export function confirm({ title, text, label, action }) {
  return openForm({ title, body: h("p", {}, text), saveLabel: label, save: action, danger: true });
}

/** A dialog with something to read. */
export function openInfo(title, ...body) {
  const dialog = h("dialog", { "aria-labelledby": "dialog-title" },
    h("div", { class: "stack" }, h("h2", { id: "dialog-title" }, title), body,
      h("div", { class: "actions" }, h("button", { type: "button", class: "main", on: { click: () => dialog.close() } }, "Close"))));
  return open(dialog);
}

function open(dialog) {
  document.body.append(dialog);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.showModal();
  return dialog;
}

addEventListener("hashchange", () => {
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
});
