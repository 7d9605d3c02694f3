/** The rows of an answer to a query, as a virtual list; and as CSV. */
import { html } from "../html.js";
import { count, seconds, time, value } from "../format.js";
import { Grid } from "./grid.js";

/** @param {{answer: any, height?: number}} props Of `POST /query`. */
export function Rows({ answer, height = 460 }) {
  const rows = answer.rows.map((cells, i) => ({ cells, i }));
  const columns = answer.columns.map((label, i) => {
    const isNumber = /INT|DOUBLE|FLOAT|DECIMAL|NUMERIC|REAL/i.test(answer.types?.[i] ?? "");
    return { key: String(i), label: answer.types ? html`${label} <span class="faint">${answer.types[i].toLowerCase()}</span>` : label, width: "minmax(120px, 1fr)", isNumber, cell: ({ cells }) => shown(cells[i]) };
  });
  return html`<div class="stack">
    <${Grid} label="Rows" columns=${columns} rows=${rows} keyOf=${(row) => String(row.i)} height=${height} width=${answer.columns.length * 130} />
    <p class="small soft">${rows.length === 1 ? "1 row" : `${count(rows.length)} rows`}${answer.is_cut_short ? ", cut short: there are more" : ""} as of <code>${answer.position}</code>, committed ${time(answer.committed, { ms: true })}${answer.elapsed_seconds === undefined ? "" : `, in ${seconds(answer.elapsed_seconds)}`}</p></div>`;
}

function shown(cell) {
  if (cell === null) return html`<span class="faint">null</span>`;
  const text = value(cell);
  return html`<span title=${text}>${text === "" ? html`<span class="faint">empty text</span>` : text}</span>`;
}

/** @param {any} answer */
export function csvOf(answer) {
  const cell = (found) => {
    const text = found === null ? "" : value(found);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [answer.columns, ...answer.rows].map((row) => row.map(cell).join(",")).join("\r\n");
}
