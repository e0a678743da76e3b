/** Rows that a person has typed, pasted or chosen as a file: one object, a list, or JSON lines. */

/** @param {string} text @returns {any[]} */
export function readRows(text) {
  const trimmed = text.trim();
  if (!trimmed) throw new Error("There is no row yet.");
  try {
    const read = JSON.parse(trimmed);
    return Array.isArray(read) ? read : [read];
  } catch (first) {
    return trimmed.split("\n").filter((line) => line.trim()).map((line, place) => {
      try {
        return JSON.parse(line);
      } catch (error) {
        throw new Error(`Line ${place + 1} is not valid JSON: ${error.message}`, { cause: first });
      }
    });
  }
}
