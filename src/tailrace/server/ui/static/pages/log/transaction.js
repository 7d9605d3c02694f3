/** One transaction and its changes. Values of rows are asked for only when a person wants them. */
import { connectorPath } from "../../api.js";
import { bytes, count, counted, time } from "../../format.js";
import { html, useState } from "../../html.js";
import { goWith } from "../../router.js";
import { useResource } from "../../store.js";
import { CopyAs } from "../../parts/copying.js";
import { Empty, Shown } from "../../parts/notice.js";

const SIGNS = { insert: "+", update: "±", delete: "−", truncate: "∅", unsent: "!" };
const PAGE = 50;

export function Transaction({ name, seq }) {
  const [isOpen, open] = useState(false);
  const [after, go] = useState(-1);
  const path = connectorPath(name, `/log/transactions/${encodeURIComponent(seq)}?limit=${PAGE}&after=${after}${isOpen ? "&values=true" : ""}`);
  const found = useResource(path);
  return html`<section class="card" aria-label=${`Transaction ${seq}`}><header><h2>Transaction ${seq}</h2>
      <div class="row"><button type="button" class="button small" aria-pressed=${String(isOpen)} onClick=${() => open(!isOpen)}>${isOpen ? "Hide values" : "Show values"}</button>
        <${CopyAs} request=${{ method: "GET", path }} cli=${`tailrace log show LAKE/_tailrace/log --seq ${seq}`} />
        <button type="button" class="button plain small" aria-label="Close the transaction" onClick=${() => goWith({ seq: null })}>✕</button></div></header>
    <${Shown} of=${found} what="Transaction">${({ transaction, changes, next }) => html`<div class="body"><${Facts} of=${transaction} /></div>
      ${changes.length ? html`<ul class="edits">${changes.map((each) => html`<${Change} key=${each.position} change=${each} isOpen=${isOpen} />`)}</ul>` : html`<${Empty} title="It changed no row" />`}
      ${(next !== null || after >= 0) && html`<footer class="row"><button type="button" class="button small" disabled=${after < 0} onClick=${() => go(-1)}>First changes</button>
        <button type="button" class="button small" disabled=${next === null} onClick=${() => go(next)}>Further changes</button></footer>`}`}<//>
  </section>`;
}

function Facts({ of }) {
  return html`<dl class="facts figures"><dt>Committed</dt><dd>${time(of.committed, { ms: true, date: true })} at <code>${of.position}</code>, xid ${of.xid}</dd>
    <dt>Holds</dt><dd>${counted(of.changes, "change")}, ${bytes(of.bytes)}${of.is_streamed ? ", logged before it had committed" : ""}</dd>
    <dt>Tables</dt><dd class="break">${of.tables.join(", ") || "none"}</dd>
    <dt>Lake</dt><dd>${of.is_published ? "a published cut shows it" : "not published yet; readable live"}</dd></dl>`;
}

function Change({ change, isOpen }) {
  const { kind, table, before, after, unchanged, cut_short: cut, problem } = change;
  return html`<li><span class="row"><span class="tag"><span aria-hidden="true">${SIGNS[kind] ?? "?"}</span> ${kind}</span><span class="strong break">${table}</span>
      <span class="small soft">${bytes(change.bytes)}, record ${count(change.position)}</span></span>
    ${isOpen && html`<div class="pairs">
      ${before && html`<${Side} kind="gone" sign="−" label="before" row=${before} other=${after} />`}
      ${after && html`<${Side} kind="come" sign="+" label="after" row=${after} other=${before} />`}</div>
      ${unchanged.length > 0 && html`<p class="small soft">not sent, because unchanged: ${unchanged.join(", ")}</p>`}
      ${cut.length > 0 && html`<p class="small soft">longer than shown: ${cut.join(", ")}</p>`}
      ${problem && html`<p class="small warn">${problem}</p>`}`}</li>`;
}

function Side({ kind, sign, label, row, other }) {
  return html`<div class=${kind}><span class="sign" aria-label=${label}>${sign}</span>${Object.entries(row).map(([name, value]) => html`<span class="pair"><span class="soft">${name}</span> ${other && other[name] !== value ? html`<strong>${shown(value)}</strong>` : shown(value)}</span>`)}</div>`;
}

/** Null is told from the text "null". */
const shown = (value) => (value === null ? html`<em class="faint">null</em>` : value === "" ? html`<em class="faint">empty</em>` : value);
