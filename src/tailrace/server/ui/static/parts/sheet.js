/** Tables of figures that fit any window, and the way through pages of what is newest first. */
import { html } from "../html.js";

/**
 * @param {{name: string, head: string[], rows: {key: any, cells: any[], isHere?: boolean}[]}} props A head that begins
 *   with `#` is a column of figures, one with `~` of text that may be long; each cell is a text or markup.
 */
export function Sheet({ name, head, rows }) {
  const kinds = head.map((each) => (each[0] === "#" ? "num" : each[0] === "~" ? "break" : "nowrap"));
  return html`<div class="scroll" tabindex="0" role="group" aria-label=${name}><table class="figures"><caption class="unseen">${name}</caption>
    <thead><tr>${head.map((each, n) => html`<th class=${kinds[n] === "num" ? "num" : ""}>${each.replace(/^[#~]/, "")}</th>`)}</tr></thead>
    <tbody>${rows.map(({ key, cells, isHere }) => html`<tr key=${key} aria-current=${isHere ? "true" : undefined}>${cells.map((cell, n) => html`<td class=${kinds[n]}>${cell}</td>`)}</tr>`)}</tbody>
  </table></div>`;
}

/** @param {{before: any, next: any, go: (before: string | null) => void, text: string}} props */
export function Pager({ before, next, go, text }) {
  return html`<footer class="row apart"><span class="small soft">${text}</span><div class="row">
    ${before && html`<button type="button" class="button small" onClick=${() => go(null)}>Newest</button>`}
    <button type="button" class="button small" disabled=${!next} onClick=${() => go(String(next))}>Older</button></div></footer>`;
}
