/** Who is signed in. The browser keeps a cookie that scripts cannot read; the token itself is kept nowhere. */

import { get, remove, request } from "./api.js";

/** @typedef {{token: string | null, name: string | null, role: string, sets: string[] | null, owner: string | null}} Session */

/** @returns {Promise<Session | null>} null if a token is needed */
export async function readSession() {
  try {
    return await get("/v1/session");
  } catch (error) {
    if (error.status === 401) return null;
    throw error;
  }
}

/** @param {string} token @returns {Promise<Session>} */
export async function signIn(token) {
  if (!/^[\x21-\x7e]+$/.test(token.trim())) throw new Error("the token is unknown"); // no header may have it
  return request("POST", "/v1/session", { headers: { Authorization: `Bearer ${token.trim()}` } });
}

export function signOut() {
  return remove("/v1/session");
}

const ROLES = ["read", "write", "admin"];

/** Whether a session has a role, or a higher one. */
export function may(session, role) {
  return Boolean(session) && ROLES.indexOf(session.role) >= ROLES.indexOf(role);
}
