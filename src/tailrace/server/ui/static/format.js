/** Figures in words: with their unit, and in a word where they are 0 or not known. */

const BYTES = ["B", "KB", "MB", "GB", "TB", "PB"];
export const UNKNOWN = "not known";

/** @param {number | null | undefined} value */
export function bytes(value) {
  if (value === null || value === undefined) return UNKNOWN;
  let size = Math.abs(value);
  let unit = 0;
  while (size >= 1000 && unit < BYTES.length - 1) {
    size /= 1000;
    unit += 1;
  }
  const digits = unit === 0 || size >= 100 ? 0 : size >= 10 ? 1 : 2;
  return `${value < 0 ? "-" : ""}${_trimmed(size.toFixed(digits))} ${BYTES[unit]}`;
}

/** @param {number | null | undefined} value */
export function count(value) {
  if (value === null || value === undefined) return UNKNOWN;
  return Number.isInteger(value) ? value.toLocaleString("en-US") : _trimmed(value.toFixed(value < 10 ? 1 : 0));
}

/** `1 table`, `3 tables`, `no tables`. */
export function counted(value, one, many = `${one}s`) {
  if (value === null || value === undefined) return `${many}: ${UNKNOWN}`;
  return value === 0 ? `no ${many}` : `${count(value)} ${value === 1 ? one : many}`;
}

/** A duration, as short as can be. @param {number | null | undefined} value Seconds. */
export function seconds(value) {
  if (value === null || value === undefined) return UNKNOWN;
  if (value < 0.0005) return "0 s";
  if (value < 1) return value < 0.1 ? `${Math.max(1, Math.round(value * 1000))} ms` : `${value.toFixed(1)} s`;
  if (value < 60) return `${_trimmed(value.toFixed(value < 10 ? 1 : 0))} s`;
  if (value < 3600) return `${Math.floor(value / 60)} min ${_two(value % 60)} s`;
  if (value < 86400) return `${Math.floor(value / 3600)} h ${_two((value % 3600) / 60)} min`;
  return `${Math.floor(value / 86400)} d ${Math.floor((value % 86400) / 3600)} h`;
}

/** How long ago. @param {number} ms Since 1970. */
export function ago(ms, now = Date.now()) {
  const passed = (now - ms) / 1000;
  if (passed < 1) return "just now";
  return `${seconds(passed < 10 ? Math.round(passed * 10) / 10 : Math.round(passed))} ago`;
}

const ZONE = "tailrace-zone";
/** Whether times are shown in UTC, the default. */
export const isUtc = () => localStorage.getItem(ZONE) !== "local";
/** @param {boolean} utc */
export const setUtc = (utc) => localStorage.setItem(ZONE, utc ? "utc" : "local");

/** A moment with its zone. @param {string | number | null | undefined} value @param {{ms?: boolean, date?: boolean}} [how] */
export function time(value, how = {}) {
  if (value === null || value === undefined) return "never";
  const at = new Date(value);
  if (Number.isNaN(at.getTime())) return String(value);
  const shown = isUtc() ? at : new Date(at.getTime() - at.getTimezoneOffset() * 60000);
  const text = shown.toISOString();
  const clock = how.ms ? text.slice(11, 23) : text.slice(11, 19);
  const day = text.slice(0, 10);
  const needsDay = how.date ?? Math.abs(Date.now() - at.getTime()) > 20 * 3600 * 1000;
  return `${needsDay ? `${day} ` : ""}${clock} ${zone(at)}`;
}

/** @param {Date} at */
export function zone(at = new Date()) {
  if (isUtc()) return "UTC";
  const minutes = -at.getTimezoneOffset();
  const size = Math.abs(minutes);
  return `UTC${minutes < 0 ? "-" : "+"}${_two(size / 60)}:${_two(size % 60)}`;
}

/** @param {string} text @param {number} length Characters; the start is left out, the end tells more. */
export function shortened(text, length) {
  return text.length <= length ? text : `…${text.slice(text.length - length + 1)}`;
}

/** A value of JSON on one line. */
export function value(found) {
  if (found === null || found === undefined) return "null";
  return typeof found === "object" ? JSON.stringify(found) : String(found);
}

/** The place that an LSN such as `0/1A2B` names, in bytes; null where it is none. */
export function lsn(text) {
  const found = /^([0-9A-Fa-f]{1,8})\/([0-9A-Fa-f]{1,8})$/.exec(text ?? "");
  return found ? parseInt(found[1], 16) * 2 ** 32 + parseInt(found[2], 16) : null;
}

const _two = (number) => String(Math.floor(number)).padStart(2, "0");
const _trimmed = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
