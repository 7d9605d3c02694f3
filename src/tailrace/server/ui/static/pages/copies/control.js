/** Pausing, resuming and stopping copies, and what became of the signal that asked for it. */
import { ask, connectorPath, part } from "../../api.js";
import { html, useEffect, useState } from "../../html.js";
import { useResource } from "../../store.js";
import { Outcome, useOutcome } from "../../actions.js";
import { CopyAs, quoted } from "../../parts/copying.js";
import { Dialog } from "../../parts/dialog.js";
import { State } from "../../parts/state.js";
import { patternOf } from "./start.js";

const ENDED = ["done", "stopped", "failed", "rejected"];
const STEPS = ["waiting", "received", "running"];
const STEP_WORDS = { waiting: "on disk", received: "seen by the connector", running: "under way" };
const SHOWN_MAX = 30;

function requestFor(name, what, tables) {
  const body = tables.length ? { "data-collections": tables.map(patternOf) } : {};
  return { method: "POST", path: connectorPath(name, `/snapshots/${what}`), body };
}

const cliOf = (what, tables) => `tailrace signal LAKE ${what}-snapshot${tables.map((each) => ` --table ${quoted(patternOf(each))}`).join("")}`;

/** @param {{name: string, tables: string[], isPaused: boolean, tell: (id: string) => void, label: string, small?: boolean}} props No tables: all. */
export function Control({ name, tables, isPaused, tell, label, small = false }) {
  const { busy, outcome, run } = useOutcome();
  const [isStopping, stop] = useState(false);
  const next = isPaused ? "resume" : "pause";
  const word = isPaused ? "Resume" : "Pause";
  const size = small ? "small" : "";
  const send = () => run(async () => tell((await ask(requestFor(name, next, tables))).data.id));
  return html`<div class="row"><${Outcome} outcome=${outcome} busy=${busy} doing="asking …" />
    <button type="button" class="button ${size}" disabled=${busy} aria-label=${`${word} ${label}`} onClick=${send}>${word}</button>
    <button type="button" class="button ${size} danger" disabled=${busy} aria-label=${`Stop ${label}`} onClick=${() => stop(true)}>Stop …</button>
    ${!small && html`<${CopyAs} request=${requestFor(name, next, tables)} cli=${cliOf(next, tables)} />`}
    ${isStopping && html`<${StopDialog} name=${name} tables=${tables} label=${label} close=${() => stop(false)} tell=${tell} />`}</div>`;
}

/** What stays, table by table, before a copy is given up. */
function StopDialog({ name, tables, label, close, tell }) {
  const all = useResource(connectorPath(name, "/tables?state=snapshotting&state=resyncing&state=pending"));
  const copies = useResource(connectorPath(name, "/snapshots"));
  const { busy, outcome, run } = useOutcome();
  const concerned = (all.data ?? []).filter((each) => !tables.length || tables.includes(each.table));
  const request = requestFor(name, "stop", tables);
  const send = () => run(async () => {
    tell((await ask(request)).data.id);
    close();
  });
  return html`<${Dialog} title=${`Stop ${label}`} close=${close}>
    <div class="body"><p>Nothing more is read after the rows in hand. For each table:</p>
      <ul class="bullets">${concerned.slice(0, SHOWN_MAX).map((each) => html`<li><span><code>${each.table}</code> ${whatStays(each, copies.data)}</span></li>`)}
        ${concerned.length > SHOWN_MAX && html`<li><span>and ${concerned.length - SHOWN_MAX} more</span></li>`}${all.data && !concerned.length && html`<li><span>none of them is being copied now</span></li>`}</ul>
      <${Outcome} outcome=${outcome} busy=${busy} /></div>
    <footer><${CopyAs} request=${request} cli=${cliOf("stop", tables)} /><button type="button" class="button" onClick=${close}>Let it run</button>
      <button type="button" class="button main danger" disabled=${busy} onClick=${send}>Stop it</button></footer><//>`;
}

function whatStays(table, copies) {
  if (copies?.partial.includes(table.table)) return "stays whole: only some of its rows were being copied.";
  return table.state === "resyncing"
    ? "keeps its last good version and is in error until it is copied again."
    : "has never been whole: it is in error until it is copied again.";
}

/** A signal on its way: on disk, seen, under way, ended. It stays where it was asked for. @param {{name: string, id: string}} props */
export function SentSignal({ name, id }) {
  const [isOver, over] = useState(false);
  const found = useResource(connectorPath(name, `/signals/${part(id)}`), isOver ? {} : { connector: name, kinds: ["CopyNotified"], everySeconds: 1, fastest: 500 });
  const signal = found.data;
  const ended = signal && ENDED.includes(signal.state);
  useEffect(() => over(!!ended), [ended]);
  const at = signal ? STEPS.indexOf(signal.state === "paused" ? "running" : signal.state) : -1;
  return html`<div class="card signal" role="status" aria-live="polite"><div class="body">
    <div class="row apart"><span><span class="strong">${signal?.type ?? "signal"}</span> <code>${id}</code></span>${signal ? html`<${State} of=${signal.state} />` : html`<span class="spin"></span>`}</div>
    <ol class="track">${STEPS.map((each, i) => html`<li class=${ended || i < at ? "done" : i === at ? "now" : ""}>${STEP_WORDS[each]}</li>`)}<li class=${ended ? (["done", "stopped"].includes(signal.state) ? "done" : "failed") : ""}>ended</li></ol>
    ${signal?.result && html`<p class="break">${signal.result}</p>`}
    ${signal?.state === "waiting" && html`<p class="small soft">A running connector takes it up at once; otherwise the next start does.</p>`}
    ${found.error && html`<p class="bad small">${found.error.message}</p>`}</div></div>`;
}
