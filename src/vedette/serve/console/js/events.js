/**
 * The events of a set, as they happen. A WebSocket: browsers allow only six streams of Server-Sent Events to one host,
 * over all tabs. A lost connection is opened again after the last event that was seen, so none is missing.
 */

import { setPath } from "./api.js";

const MOST_WAIT = 15_000;

/**
 * @param {string} set
 * @param {{
 *   after?: number, query?: string, key?: string, owner?: string, signal: AbortSignal,
 *   onEvent: (event: any) => void, onGap?: (gap: {from: number, to: number}) => void,
 *   onState?: (state: "open" | "lost") => void,
 * }} options `after`: the sequence number after which to begin; without it, with the next event
 */
export function follow(set, { after, query, key, owner, signal, onEvent, onGap, onState }) {
  let last = after;
  let wait = 500;
  let socket = null;
  let timer = 0;

  function connect() {
    const given = Object.entries({ after: last, query, key, owner }).filter(([, value]) => value !== undefined);
    const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
    const url = new URL(`${setPath(set)}/events/ws?${text}`, location.href);
    url.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    socket = new WebSocket(url);
    socket.onopen = () => {
      wait = 500;
      onState?.("open");
    };
    socket.onmessage = (message) => {
      const event = JSON.parse(message.data);
      if (event.gap) {
        last = event.gap.to;
        onGap?.(event.gap);
      } else {
        last = event.sequence;
        onEvent(event);
      }
    };
    socket.onclose = () => {
      if (signal.aborted) return;
      onState?.("lost");
      timer = setTimeout(connect, wait);
      wait = Math.min(2 * wait, MOST_WAIT);
    };
  }

  signal.addEventListener("abort", () => {
    clearTimeout(timer);
    socket?.close();
  });
  if (!signal.aborted) connect();
}
