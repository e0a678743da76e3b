/** Values as people read them. */

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const rough = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });
const fine = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });

export const count = (value) => (value === null || value === undefined ? "–" : whole.format(value));

export const number = (value) => (Math.abs(value) >= 10_000 ? whole.format(value) : fine.format(value));

/** A rate, such as 1,200/s or 0.77/s. */
export const rate = (value) => (!Number.isFinite(value) ? "–" : `${value >= 10 ? whole.format(value) : rough.format(value)}/s`);

/** A time of the day today, or a date with it. */
export function moment(text) {
  if (!text) return "–";
  const time = new Date(text);
  if (Number.isNaN(time.getTime())) return String(text);
  const isToday = time.toDateString() === new Date().toDateString();
  const clock = time.toLocaleTimeString("en-GB");
  return isToday ? clock : `${time.toLocaleDateString("sv")} ${clock}`;
}

const SECONDS_SINCE_1970 = 1e9; // numbers above are such times

/** A time that is a number, as rows of moving objects have it: seconds since 1970, or any other. */
export const rowTime = (time) => (time > SECONDS_SINCE_1970 ? moment(1000 * time) : number(Math.round(10 * time) / 10));

/** A word with its number: 1 set, 2 sets, 2 queries. */
export function plural(n, one, many = `${one}s`) {
  return `${count(n)} ${n === 1 ? one : many}`;
}

/** Any value of a row or of metadata, on one line. */
export function plain(value) {
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
