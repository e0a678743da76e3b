/** The fields of a set, read from its schema: "symbol string, price double". */

/**
 * @param {string | Record<string, string> | null} schema of one stream, or of several by name
 * @returns {{name: string, type: string, path: string[]}[]} fields of several streams have the stream before them: trades.price.
 * `path` is where a row, or an object with a row per stream, has the value
 */
export function fieldsOf(schema) {
  if (!schema) return [];
  if (typeof schema === "string") return split(schema);
  return Object.entries(schema).flatMap(([stream, own]) => split(own).map((each) => ({ ...each, name: `${stream}.${each.name}`, path: [stream, each.name] })));
}

function split(text) {
  const parts = [];
  let depth = 0;
  let start = 0;
  for (let place = 0; place <= text.length; place++) {
    const sign = text[place];
    if ("(<".includes(sign ?? " ")) depth++;
    if (")>".includes(sign ?? " ")) depth--;
    if (place === text.length || (sign === "," && depth === 0)) {
      parts.push(text.slice(start, place).trim());
      start = place + 1;
    }
  }
  return parts.filter(Boolean).map((part) => {
    const found = part.match(/^(`[^`]*`|[^\s:]+)\s*:?\s*(.*)$/s);
    const name = found[1].replace(/^`|`$/g, "");
    return { name, type: found[2], path: [name] };
  });
}
