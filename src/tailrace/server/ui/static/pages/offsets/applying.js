/** From a dry run to the change: "stop, then apply" as steps that can be seen, and what became of it. */
import { act, Outcome, useOutcome } from "../../actions.js";
import { ask, connectorPath } from "../../api.js";
import { actionsOf, refusedHere } from "../../command.js";
import { time } from "../../format.js";
import { html, useEffect, useState } from "../../html.js";
import { CopyAs } from "../../parts/copying.js";
import { Dialog, TypeName } from "../../parts/dialog.js";
import { Differences, differencesOf } from "../../parts/diff.js";
import { Notice } from "../../parts/notice.js";
import { Answer, couldApply, isGrave } from "./assessment.js";
import { offsetValue } from "./form.js";

/**
 * @param {{name: string, draft: import("./draft.js").Draft, progress: any, server: any, history: any,
 *   finish: (message: string) => void, again: () => void, applied: string | null}} props
 */
export function Applying({ name, draft, progress, server, history, finish, again, applied }) {
  const [isOpen, open] = useState(false);
  const stopped = progress?.state === "STOPPED";
  const rule = !draft.isChanged ? "nothing is changed yet" : draft.assessment && !draft.assessment.differences.length ? "nothing would change" : !couldApply(draft.assessment) ? "the dry run does not allow it" : !stopped ? refusedHere(server, "stop") : null;
  const request = { method: "PATCH", path: connectorPath(name, "/offsets"), body: draft.body, headers: versionOf(draft.assessment) };
  return html`<div class="row apart">
    <div class="row">
      <button type="button" class="button main" disabled=${!!rule || draft.isAsking} onClick=${() => open(true)}>${stopped ? "Apply …" : "Stop, then apply …"}</button>
      ${rule && html`<span class="small soft">${rule}</span>`}
    </div>
    ${draft.isChanged && !draft.textFault && html`<${CopyAs} request=${request} cli="tailrace offsets set LAKE offsets.json --dsn DSN" />`}
  </div>
  ${applied && html`<${After} name=${name} text=${applied} server=${server} />`}
  ${isOpen && html`<${Steps} name=${name} draft=${draft} progress=${progress} request=${request} history=${history} close=${() => open(false)} finish=${finish} again=${again} />`}`;
}

/** The version that a dry run named. */
export const versionOf = (assessment) => (assessment ? { "if-match": `"${assessment.version}"` } : undefined);

/** What waits now, and the two ways on. */
export function After({ name, text, server }) {
  const { busy, outcome, run } = useOutcome();
  const { resume } = actionsOf(name);
  const rule = refusedHere(server, "resume");
  const start = () => run(async () => {
    await act(name, resume);
    return "it starts, and takes the edit up";
  });
  return html`<div class="after"><${Notice} tone="good" text=${text} action=${html`<button type="button" class="button small main" disabled=${busy || !!rule} title=${rule ?? ""} onClick=${start}>Start</button>
    <a class="button small" href="#history">Undo …</a>`}><${Outcome} outcome=${outcome} busy=${busy} /><//></div>`;
}

/** Step by step: stopped, looked at again, applied. Nothing is stopped before the person has pressed for it. */
function Steps({ name, draft, progress, request, history, close, finish, again }) {
  const [looked, setLooked] = useState(/** @type {any} */ (null));
  const [typed, type] = useState("");
  const { busy, outcome, run } = useOutcome();
  const [conflict, setConflict] = useState(/** @type {any} */ (null));
  const stopped = progress?.state === "STOPPED";
  const { stop } = actionsOf(name);
  useEffect(() => {
    if (stopped) run(async () => void setLooked(await draft.look()));
  }, [stopped]);
  const apply = () => run(async () => {
    try {
      const { data } = await ask({ ...request, body: looked.asked, headers: versionOf(looked) });
      close();
      finish(data.message);
    } catch (error) {
      if (/** @type {any} */ (error).status === 409) setConflict(error);
      throw error;
    }
  });
  const grave = isGrave(looked);
  const ready = looked?.possible && (!grave || typed === name) && !busy;
  const step = (done, now) => (done ? "done" : now ? "now" : "");
  return html`<${Dialog} title=${`Change the offset of ${name}`} close=${close} broad>
    <div class="body">
      <ol class="steps">
        <li class=${step(stopped, true)}><div class="stack"><span>${stopped ? "The connector is stopped." : "Stop the connector. Its lake stays and can be asked; it stays stopped until you start it."}</span>
          ${!stopped && html`<div class="row"><button type="button" class="button main" disabled=${busy || progress?.target === "STOPPED"} onClick=${() => run(() => act(name, stop))}>Stop ${name}</button>
            ${progress?.target === "STOPPED" && html`<span class="outcome"><span class="spin"></span>stopping, after the batch in hand …</span>`}</div>`}</div></li>
        <li class=${step(looked?.possible, stopped)}><div class="stack"><span>Look at what would follow, now that nothing moves.</span>
          ${looked && html`<${Answer} found=${looked} />`}</div></li>
        <li class=${step(false, looked?.possible)}><div class="stack"><span>Apply it. The next start takes it up.</span>
          ${looked?.possible && grave && html`<${TypeName} name=${name} typed=${typed} type=${type} />`}</div></li>
      </ol>
      ${conflict && html`<${Conflict} error=${conflict} history=${history} again=${() => { again(); draft.forget(); close(); }} />`}
      <${Outcome} outcome=${conflict ? null : outcome} busy=${busy} />
    </div>
    <footer><button type="button" class="button" onClick=${close}>Close</button>
      <button type="button" class="button main ${grave ? "danger" : ""}" disabled=${!ready} onClick=${apply}>Apply</button></footer>
  <//>`;
}

/** Someone else came first: what they did, and the way to begin again from it. */
export function Conflict({ error, history, again }) {
  useEffect(() => history.reload(), [error]);
  const other = (history.data ?? []).at(-1);
  return html`<${Notice} tone="warn" text=${error.message} hint=${error.hint} action=${html`<button type="button" class="button small main" onClick=${again}>Start again from it</button>`}>
    ${other && html`<p class="small">Edit ${other.version} (${other.kind}) by ${other.who}, ${time(other.time)}: ${other.consequence}</p>
      <${Differences} differences=${differencesOf(other.before[0]?.offset, other.after[0]?.offset)} show=${offsetValue} />`}<//>`;
}

