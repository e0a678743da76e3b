/** The keys of a monitor as they change, by WebSocket. A lost connection is opened again. */

import { setPath } from "./api.js";

const WAIT = 1500;

/**
 * @param {string} set
 * @param {{query: Record<string, any>, signal: AbortSignal, onKeys: (message: any) => void, onState?: (state: "open" | "lost") => void}} options
 */
export function followKeys(set, { query, signal, onKeys, onState }) {
  let socket = null;
  let timer = 0;

  function connect() {
    const text = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]));
    const url = new URL(`${setPath(set)}/keys/ws?${text}`, location.href);
    url.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    socket = new WebSocket(url);
    socket.onopen = () => onState?.("open");
    socket.onmessage = (message) => signal.aborted || onKeys(JSON.parse(message.data));
    socket.onclose = () => {
      if (signal.aborted) return;
      onState?.("lost");
      timer = setTimeout(connect, WAIT);
    };
  }

  signal.addEventListener("abort", () => {
    clearTimeout(timer);
    socket?.close();
  });
  if (!signal.aborted) connect();
}
