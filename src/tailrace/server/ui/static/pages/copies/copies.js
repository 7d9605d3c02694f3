/** Copies of tables beside the stream: what is under way, what was asked for, and every run that there was. */
import { connectorPath } from "../../api.js";
import { count, counted, seconds, time } from "../../format.js";
import { html, useState } from "../../html.js";
import { goWith } from "../../router.js";
import { useResource } from "../../store.js";
import { CopyAs } from "../../parts/copying.js";
import { Empty, Shown } from "../../parts/notice.js";
import { State } from "../../parts/state.js";
import { Control, SentSignal } from "./control.js";
import { StartCopy } from "./start.js";

const KINDS = ["SnapshotProgressed", "CopyNotified", "TableChanged", "LifeChanged"];
const SHOWN_SIGNALS = 8;

export function Copies({ name, progress, route }) {
  const copies = useResource(connectorPath(name, "/snapshots"), { connector: name, kinds: KINDS, everySeconds: 10, fastest: 700 });
  const [sent, setSent] = useState(/** @type {string[]} */ ([]));
  const starting = route.query.get("start");
  const isStarting = starting !== null;
  const tell = (id) => {
    setSent((now) => [id, ...now.filter((each) => each !== id)].slice(0, 4));
    copies.reload();
  };
  return html`<div class="row apart"><p class="soft">A copy reads a table in short windows beside the stream. Nothing is written to the source, and the lake stays exact meanwhile.</p>
      <button type="button" class="button main" onClick=${() => goWith({ start: "-" })}>Start a copy …</button></div>
    ${sent.map((id) => html`<${SentSignal} key=${id} name=${name} id=${id} />`)}
    <${Shown} of=${copies} what="Copies">${(data) => html`
      <${UnderWay} name=${name} data=${data} tell=${tell} />
      <${Asked} asked=${data.asked} />`}<//>
    <${Runs} name=${name} />
    ${isStarting && html`<${StartCopy} name=${name} tables=${starting === "-" ? [] : starting.split(",")} close=${() => goWith({ start: null })} tell=${tell} state=${progress.data?.state} />`}`;
}

function UnderWay({ name, data, tell }) {
  const isAllPaused = data.paused.includes("*");
  return html`<section class="card"><header><h2>Under way</h2>
      ${(data.copying.length > 0 || data.paused.length > 0) && html`<${Control} name=${name} tables=${[]} isPaused=${isAllPaused} tell=${tell} label="all copies" />`}</header>
    ${data.paused.length > 0 && html`<div class="body"><p><${State} of="paused" word=${isAllPaused ? "all copies are paused" : `paused: ${data.paused.join(", ")}`} /> <span class="soft">Paused tables still follow the stream; nobody waits for them.</span></p></div>`}
    ${data.copying.length
      ? html`<ul class="copies">${data.copying.map((table) => html`<${Copy} key=${table} name=${name} table=${table} data=${data} tell=${tell} />`)}</ul>`
      : html`<${Empty} title="No table is being copied"><p>A copy begins when a table is new, when its definition changed in a way that needs it, or when you ask for it.</p><//>`}
  </section>`;
}

function Copy({ name, table, data, tell }) {
  const progress = data.progress.find((each) => each.table === table);
  const isPaused = data.paused.includes("*") || data.paused.includes(table);
  const held = data.notifications.filter((each) => each.table === table).at(-1)?.held_seconds_max;
  return html`<li><div class="row apart"><h3 class="break"><code>${table}</code></h3>
      <div class="row">${isPaused && html`<${State} of="paused" quiet />`}<${Control} name=${name} tables=${[table]} isPaused=${isPaused} tell=${tell} label=${table} small /></div></div>
    <${Progress} progress=${progress} isPaused=${isPaused} />
    <p class="small soft figures">${progress ? words(progress) : "waits for its turn"}${held ? ` · no state of the source held for longer than ${seconds(held)}` : ""}</p></li>`;
}

/** A bar only where the whole is known; else that it moves. */
function Progress({ progress, isPaused }) {
  if (!progress) return html`<div class="bar" aria-hidden="true"><i style=${{ width: "0" }}></i></div>`;
  const isKnown = progress.rows_estimated > 0;
  const percent = Math.min(100, progress.percent);
  return html`<div class="bar ${isKnown || isPaused ? "" : "unknown"}" role="progressbar" aria-label=${`Copy of ${progress.table}`} aria-valuemin="0" aria-valuemax="100"
    aria-valuenow=${isKnown ? Math.round(percent) : undefined} aria-valuetext=${words(progress)}><i style=${isKnown ? { width: `${percent}%` } : {}}></i></div>`;
}

function words(each) {
  const parts = [each.rows_estimated > 0 ? `${count(each.rows)} of about ${count(each.rows_estimated)} rows` : `${counted(each.rows, "row")} so far`];
  if (each.rows_per_second) parts.push(`${count(Math.round(each.rows_per_second))} a second`);
  if (each.seconds_left !== null && each.rows_estimated > 0) parts.push(each.seconds_left < 1 ? "nearly done" : `about ${seconds(each.seconds_left)} left`);
  parts.push(counted(each.chunks, "window"));
  return parts.join(" · ");
}

/** Signals that have not ended, then those that did. */
function Asked({ asked }) {
  const [all, showAll] = useState(false);
  if (!asked.length) return null;
  const newest = [...asked].reverse();
  const shown = all ? newest : newest.slice(0, SHOWN_SIGNALS);
  return html`<section class="card"><header><h2>Asked for</h2></header><div class="scroll"><table>
    <thead><tr><th scope="col">Signal</th><th scope="col">State</th><th scope="col">What became of it</th><th scope="col">Tables</th><th scope="col">By way of</th><th scope="col">Received</th></tr></thead>
    <tbody>${shown.map((each) => html`<tr><td><code class="break">${each.id}</code></td><td><${State} of=${each.state} quiet /></td><td class="break">${each.result ?? html`<span class="faint">nothing yet</span>`}</td>
      <td class="break small">${tablesOf(each)}</td><td>${each.channel}</td><td class="nowrap">${time(each.received)}</td></tr>`)}</tbody></table></div>
    ${newest.length > SHOWN_SIGNALS && html`<footer><button type="button" class="button small" onClick=${() => showAll(!all)}>${all ? "Show fewer" : `Show all ${count(newest.length)}`}</button></footer>`}</section>`;
}

function tablesOf(signal) {
  try {
    return JSON.parse(signal.data)["data-collections"]?.join(", ") ?? "";
  } catch {
    return signal.data;
  }
}

function Runs({ name }) {
  const runs = useResource(connectorPath(name, "/snapshots/runs?limit=50"), { connector: name, kinds: ["CopyNotified"], everySeconds: 30 });
  return html`<section class="card"><header><h2>Every copy so far</h2><${CopyAs} request=${{ method: "GET", path: connectorPath(name, "/snapshots/runs") }} cli="tailrace signals LAKE" label="Copy reading as …" /></header>
    <${Shown} of=${runs} what="Runs">${({ runs: all }) => (all.length ? html`<ul class="edits">${all.map((each) => html`<${Run} run=${each} />`)}</ul>` : html`<${Empty} title="No copy yet" />`)}<//></section>`;
}

function Run({ run }) {
  return html`<li><details><summary><${State} of=${run.state} /> <span class="soft">${time(run.began, { date: true })}</span>
      <span>${run.id ? html`signal <code>${run.id}</code>` : "begun by the connector"}</span> <span class="tag">${run.type ?? "copy"}</span>
      <span class="soft">${run.seconds === null || run.seconds === undefined ? "" : `${seconds(run.seconds)} · `}${counted(run.rows, "row")}</span>${run.result ? html`<span class="consequence break">${run.result}</span>` : ""}</summary>
    <div class="scroll"><table><thead><tr><th scope="col">Table</th><th scope="col">State</th><th scope="col" class="num">Rows</th><th scope="col" class="num">Windows</th><th scope="col" class="num">Longest state held</th></tr></thead>
      <tbody>${run.tables.map((each) => html`<tr><td><code>${each.table}</code></td><td><${State} of=${each.state} quiet /></td><td class="num">${count(each.rows)}</td><td class="num">${count(each.chunks)}</td><td class="num">${each.held_seconds_max ? seconds(each.held_seconds_max) : "none"}</td></tr>`)}</tbody></table></div></details></li>`;
}
