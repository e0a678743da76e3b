/** Elements, made from values. Texts are set as text, so nothing that the service answers is ever read as HTML. */

/**
 * @typedef {Node | string | number | null | undefined | false | Child[]} Child
 * @param {string} tag
 * @param {Record<string, any>} [given] attributes; `on` has listeners, `class` a text, and true or false are allowed
 * @param {...Child} children
 * @returns {any}
 */
export function h(tag, given = {}, ...children) {
  return fill(document.createElement(tag), given, children);
}

const SVG = "http://www.w3.org/2000/svg";

/** As `h`, for SVG. @returns {any} */
export function s(tag, given = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), given, children);
}

/** Replace what an element contains. */
export function put(element, ...children) {
  element.replaceChildren(...flat(children));
  return element;
}

function fill(element, given, children) {
  for (const [name, value] of Object.entries(given)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [type, listener] of Object.entries(value)) element.addEventListener(type, listener);
    else if (name === "value" || name === "checked") element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...flat(children));
  return element;
}

function flat(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
}
