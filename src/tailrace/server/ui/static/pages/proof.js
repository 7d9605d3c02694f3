/** Proof: the lake compared with its source, row by row, while both are written to; verdicts, and keys that differ. */
import { Outcome, useOutcome } from "../actions.js";
import { ask, connectorPath } from "../api.js";
import { refusedHere } from "../command.js";
import { count, counted, time } from "../format.js";
import { html, useState } from "../html.js";
import { useKnown } from "../shared.js";
import { useResource } from "../store.js";
import { CopyAs } from "../parts/copying.js";
import { Hint, Notice, Shown } from "../parts/notice.js";
import { State } from "../parts/state.js";

const TABLES_MAX = 200;
const WORDS = { running: "started", stopped: "skipped", interrupted: "aborted", different: "differs", "schema differs": "differs", "left out": "removed" };

export function Proof({ name, progress }) {
  const [chosen, choose] = useState(/** @type {number | null} */ (null));
  const [isRunning, setRunning] = useState(false);
  const path = connectorPath(name, "/verifications");
  const runs = useResource(path, isRunning ? { everySeconds: 1, fastest: 700 } : { everySeconds: 15 });
  const { busy, outcome, run } = useOutcome();
  const { server } = useKnown();
  const [newest] = runs.data ?? [];
  if (isRunning !== (newest?.state === "running")) setRunning(!isRunning);
  const shown = runs.data?.find((each) => each.id === chosen) ?? newest;
  const request = { method: "POST", path, body: {} };
  const rule = refusedHere(server, "verify") ?? (isRunning ? "one runs already" : progress.data && progress.data.state !== "RUNNING" ? "the connector has to run: its lake then follows the source" : null);
  const send = (what) => run(async () => {
    await ask(what);
    choose(null);
    runs.reload();
  });
  return html`<section class="card hero"><div class="body stack">
      <p class="sentence">Reads every row of the source and of the lake as of <strong>one commit</strong>, and compares them. Nobody is held up meanwhile.</p>
      <div class="row"><button type="button" class="button main" disabled=${!!rule || busy} onClick=${() => send(request)}>Prove it</button>
        ${isRunning && html`<button type="button" class="button" onClick=${() => send({ method: "POST", path: `${path}/${newest.id}/stop` })}>Stop</button>`}
        <${CopyAs} request=${request} cli="tailrace verify LAKE --dsn DSN" /><span class="small soft">${rule}</span><${Outcome} outcome=${outcome} busy=${busy} /></div>
    </div></section>
    <${Shown} of=${runs} what="Verifications">${(all) => html`<div class="chips" role="group" aria-label="The last runs">${all.map((each) => html`<button type="button" class="chip" key=${each.id} aria-pressed=${String(each === shown)} onClick=${() => choose(each.id)}>Run ${each.id}<${Found} run=${each} /></button>`)}</div>
      ${shown ? html`<${Run} key=${shown.id} path=${path} run=${shown} />` : html`<p class="soft">It was never proven yet.</p>`}`}<//>`;
}

/** One run in a word. */
function Found({ run }) {
  const word = run.outcome ? (run.outcome.equal ? "equal" : "not equal") : run.state;
  return html`<${State} of=${word === "not equal" ? "differs" : WORDS[word] ?? word} word=${word} quiet />`;
}

function Run({ path, run }) {
  const { outcome, progress } = run;
  const { data } = useResource(outcome || progress ? `${path}/${run.id}?limit=${TABLES_MAX}${progress ? "&offset=0" : ""}` : null, progress ? { everySeconds: 1, fastest: 700 } : {});
  return html`<section class="card" aria-label=${`Run ${run.id}`}><header><h2>Run ${run.id}: <span aria-live="polite"><${Found} run=${run} /></span></h2><span class="small soft">begun ${time(run.began, { date: true })}${run.ended ? `, ended ${time(run.ended)}` : ""} · ${run.who}</span></header>
    <div class="body">${outcome && html`<p>${Object.entries(outcome.verdicts).map(([verdict, n]) => `${counted(n, "table")} ${verdict}`).join(", ") || "no tables"}${outcome.position && html`, compared at <code>${outcome.position}</code>, transaction ${count(outcome.transaction)}`}</p>`}
      ${progress && html`<p class="row"><span class="spin"></span>${progress.doing}${progress.tasks > 0 && ` (${count(progress.tasks_done)} of ${counted(progress.tasks, "task")} done)`}</p>`}
      ${run.error && html`<${Notice} tone="bad" text=${run.error} hint=${run.hint} />`}</div>
    ${!!data?.tables.length && html`<div class="scroll" tabindex="0" role="group" aria-label="Verdicts"><table><thead><tr><th scope="col">Table</th><th scope="col">Verdict</th><th scope="col" class="num">Rows in source</th><th scope="col" class="num">Rows in lake</th><th scope="col">What differs</th></tr></thead>
      <tbody>${data.tables.map((each) => html`<${Row} key=${each.table} table=${each} />`)}</tbody></table></div>
      ${data.tables_total > TABLES_MAX && html`<p class="small soft">${count(data.tables_total - TABLES_MAX)} more tables; what is worst is listed first.</p>`}`}
  </section>`;
}

function Row({ table }) {
  const differing = Object.entries(table.differing).filter(([, n]) => n);
  return html`<tr><td class="nowrap">${table.table}</td><td><${State} of=${WORDS[table.verdict] ?? table.verdict} word=${table.verdict} /></td>
    <td class="num">${count(table.rows_in_source)}</td><td class="num">${count(table.rows_in_lake)}</td>
    <td>${table.reason}${table.hint && html`<${Hint} text=${table.hint} />`}${differing.map(([how, n]) => `${counted(n, "key")} ${how}`).join(", ")}
      <ul class="mono small">${table.keys.map((each) => html`<li class="break">${Object.entries(each.key).map(([column, value]) => `${column} = ${value ?? "null"}`).join(", ")} <span class="bad">${each.difference}</span> <span class="soft">${each.columns.join(", ") || `${each.rows_in_source} in the source, ${each.rows_in_lake} in the lake`}</span></li>`)}</ul></td></tr>`;
}
