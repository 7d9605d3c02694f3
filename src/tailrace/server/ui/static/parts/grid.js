/**
 * A list of any length, of which only what can be seen is drawn: rows of one height. One stop of the Tab key; arrows move
 * in it, Enter opens a row, the space bar chooses it.
 */
import { html, useEffect, useLayoutEffect, useRef, useState } from "../html.js";

const ROW = 35;
const MORE = 8;

/**
 * @typedef {{key: string, label: string, width: string, cell: (row: any) => any, isNumber?: boolean, sort?: (row: any) => any}} Column
 */

/**
 * @param {{label: string, columns: Column[], rows: any[], keyOf: (row: any) => string, height?: number, width?: number,
 *   open?: (row: any) => void, chosen?: Set<string>, choose?: (key: string) => void, sorted?: [string, boolean],
 *   sortBy?: (key: string) => void, seen?: (first: number, last: number) => void}} props
 */
export function Grid({ label, columns, rows, keyOf, height = 560, width = 0, open, chosen, choose, sorted, sortBy, seen }) {
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  const [top, setTop] = useState(0);
  const [at, setAt] = useState(-1);
  const first = Math.max(0, Math.floor(top / ROW) - MORE);
  const last = Math.min(rows.length, Math.ceil((top + height) / ROW) + MORE);
  const template = { gridTemplateColumns: columns.map((each) => each.width).join(" ") };
  useEffect(() => seen?.(first, last), [first, last, rows.length]);
  useLayoutEffect(() => {
    if (at >= 0 && place.current) bringIntoView(place.current, at);
  }, [at]);
  const key = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: Math.floor(height / ROW) - 1, PageUp: 1 - Math.floor(height / ROW), Home: -rows.length, End: rows.length }[event.key];
    if (step !== undefined) setAt(Math.max(0, Math.min(rows.length - 1, at + step)));
    else if (event.key === "Enter" && at >= 0) open?.(rows[at]);
    else if (event.key === " " && at >= 0) choose?.(keyOf(rows[at]));
    else return;
    event.preventDefault();
  };
  const id = (row) => `row-${keyOf(row)}`;
  return html`<div class="grid" role="grid" aria-label=${label} aria-rowcount=${rows.length + 1} tabindex="0" ref=${place} style=${{ maxHeight: `${height}px`, "--grid-width": `${width}px` }}
      aria-activedescendant=${at >= 0 && rows[at] ? id(rows[at]) : undefined} onScroll=${(event) => setTop(event.target.scrollTop)} onKeyDown=${key}>
    <div class="grid-head" role="row" aria-rowindex="1" style=${template}>${columns.map((each) => html`<${Head} column=${each} sorted=${sorted} sortBy=${sortBy} />`)}</div>
    <div role="presentation" style=${{ height: `${rows.length * ROW}px`, position: "relative" }}>
      <div role="presentation" style=${{ position: "absolute", top: `${first * ROW}px`, left: 0, right: 0 }}>
        ${rows.slice(first, last).map((row, i) => html`<div class="grid-row ${chosen?.has(keyOf(row)) ? "chosen" : ""} ${first + i === at ? "here" : ""}" key=${keyOf(row)} id=${id(row)} role="row" aria-rowindex=${first + i + 2}
          aria-selected=${choose ? String(!!chosen?.has(keyOf(row))) : undefined} style=${template} onClick=${() => setAt(first + i)}>
          ${columns.map((each) => html`<span role="gridcell" class=${each.isNumber ? "num" : ""}>${each.cell(row)}</span>`)}</div>`)}
      </div>
    </div>
  </div>`;
}

function Head({ column, sorted, sortBy }) {
  const mine = sorted?.[0] === column.key;
  const direction = mine ? (sorted[1] ? "descending" : "ascending") : undefined;
  return html`<span role="columnheader" class=${column.isNumber ? "num" : ""} aria-sort=${direction}>${column.sort && sortBy
    ? html`<button type="button" class="plain-head" onClick=${() => sortBy(column.key)}>${column.label}${mine ? (sorted[1] ? " ↓" : " ↑") : ""}</button>` : column.label || html`<i class="unseen">${column.key}</i>`}</span>`;
}

function bringIntoView(element, at) {
  const y = at * ROW;
  const room = element.clientHeight - ROW * 2;
  if (y < element.scrollTop) element.scrollTop = y;
  else if (y > element.scrollTop + room) element.scrollTop = y - room;
}

/** Rows in the order of a column. @param {any[]} rows @param {Column[]} columns @param {[string, boolean]} by */
export function inOrder(rows, columns, [key, isDown]) {
  const value = columns.find((each) => each.key === key)?.sort;
  if (!value) return rows;
  const compare = (a, b) => {
    const [left, right] = [value(a), value(b)];
    // What is not known comes last, whichever way.
    if (left === right) return 0;
    if (left === null || left === undefined) return 1;
    if (right === null || right === undefined) return -1;
    return (left < right ? -1 : 1) * (isDown ? -1 : 1);
  };
  return [...rows].sort(compare);
}
