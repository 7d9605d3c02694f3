/** Every edit of the offsets: who, when, before and after, and the way back from the last one. */
import { connectorPath } from "../../api.js";
import { ask } from "../../api.js";
import { time } from "../../format.js";
import { html, useEffect, useState } from "../../html.js";
import { useKnown } from "../../shared.js";
import { CopyAs } from "../../parts/copying.js";
import { Dialog } from "../../parts/dialog.js";
import { Differences, differencesOf } from "../../parts/diff.js";
import { Empty, Failure, Notice, Shown } from "../../parts/notice.js";
import { State } from "../../parts/state.js";
import { After } from "./applying.js";
import { offsetValue } from "./form.js";

const WORDS = { waiting: "waits for the next start", taken: "applied", undone: "taken back" };

export function History({ name, history, progress, again }) {
  const [isUndoing, undo] = useState(false);
  const [done, setDone] = useState(/** @type {string | null} */ (null));
  const { server } = useKnown();
  const edits = [...(history.data ?? [])].reverse();
  return html`<section class="card" id="history"><header><h2>History</h2>
      <div class="row"><${CopyAs} request=${{ method: "POST", path: connectorPath(name, "/offsets/undo") }} cli="tailrace offsets undo LAKE" label="Copy undo as …" />
      <button type="button" class="button" disabled=${!edits.length} onClick=${() => undo(true)}>Undo the last edit …</button></div></header>
    ${done && html`<div class="body"><${After} name=${name} text=${done} server=${server} /></div>`}
    <${Shown} of=${history} what="History">${() => (edits.length ? html`<ul class="edits">${edits.map((each) => html`<${Edit} edit=${each} />`)}</ul>`
      : html`<${Empty} title="No edit yet"><p>Every change of the offset is listed here, with who made it and the way back.</p><//>`)}<//>
    ${isUndoing && html`<${UndoDialog} name=${name} stopped=${progress.data?.state === "STOPPED"} close=${() => undo(false)} finish=${(text) => { setDone(text); again(); }} />`}
  </section>`;
}

function Edit({ edit }) {
  return html`<li><details><summary><span class="strong">Edit ${edit.version}</span> <${State} of=${edit.state === "taken" ? "applied" : edit.state} word=${WORDS[edit.state]} quiet />
      <span class="tag">${edit.kind}${edit.undoes ? ` of ${edit.undoes}` : ""}</span> <span class="soft">${time(edit.time, { date: true })} · ${edit.who}</span>
      <span class="break consequence">${edit.consequence}</span></summary>
    <${Differences} differences=${differencesOf(edit.before[0]?.offset, edit.after[0]?.offset)} show=${offsetValue} /></details></li>`;
}

/** The dry run of the undo is what the dialog shows. */
function UndoDialog({ name, stopped, close, finish }) {
  const [plan, setPlan] = useState(/** @type {any} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    ask({ method: "POST", path: connectorPath(name, "/offsets/undo?dry_run=true") }).then(({ data }) => setPlan(data), setError);
  }, []);
  const apply = async () => {
    setBusy(true);
    try {
      // The edit that would undo has the next number; what it is based on is the one before.
      const { data } = await ask({ method: "POST", path: connectorPath(name, "/offsets/undo"), headers: { "if-match": `"${plan.version - 1}"` } });
      close();
      finish(data.message);
    } catch (found) {
      setError(found);
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${`Undo the last edit of ${name}`} close=${close}>
    <div class="body">
      ${!plan && !error && html`<p class="loading">Asking what would follow …</p>`}
      ${error && html`<${Failure} error=${error} />`}
      ${plan && html`<${Notice} tone="info" text=${plan.consequence} />
        <${Differences} differences=${differencesOf(plan.before[0]?.offset, plan.after[0]?.offset)} show=${offsetValue} />`}
      ${plan && !stopped && html`<${Notice} tone="warn" text="Offsets are changed while the connector is stopped. Stop it first; it stays stopped until you start it." />`}
    </div>
    <footer><button type="button" class="button" onClick=${close}>Cancel</button>
      <button type="button" class="button main" disabled=${!plan || !stopped || busy} onClick=${apply}>Undo it</button></footer>
  <//>`;
}
