/** Every configuration that was stored: when, by whom, what changed; and the way back to one. */
import { ask, connectorPath } from "../../api.js";
import { refusedHere } from "../../command.js";
import { time } from "../../format.js";
import { html, useId, useState } from "../../html.js";
import { useKnown } from "../../shared.js";
import { Confirm } from "../../parts/dialog.js";
import { Differences } from "../../parts/diff.js";
import { Failure, Notice, Shown } from "../../parts/notice.js";

export const BEGINS = "It is stored as a new version. The connector then begins again with it; its lake and its offset stay.";
export const textOf = (_, value) => value ?? "";

export function History({ name, history, again }) {
  const [plan, setPlan] = useState(/** @type {any} */ (null));
  const [error, fail] = useState(/** @type {any} */ (null));
  const rule = refusedHere(useKnown().server, "configure");
  const look = (version) => ask({ method: "POST", path: revertPath(name, `${version}&dry_run=true`) }).then(({ data }) => setPlan(data), fail);
  return html`<section class="card"><header><h2>History</h2></header>${error && html`<${Failure} error=${error} />`}
    <${Shown} of=${history} what="History">${(versions) => html`<ul class="edits">${versions.map((each) => html`<li key=${each.version}><details><summary>
        <span class="strong">Version ${each.version}</span> ${each.is_current && html`<span class="tag">now</span>`} <span class="soft">${time(each.time, { date: true })} · ${each.who ?? "not noted by whom"}</span>
        <span class="break consequence">${each.config ? each.changes.map((one) => one.field).join(", ") || "Nothing changed." : "Of an earlier connector of this name nothing is kept."}</span></summary>
        <${Differences} differences=${each.changes} show=${textOf} />
        ${each.config && !each.is_current && html`<p class="after"><button type="button" class="button small" disabled=${!!rule} title=${rule} onClick=${() => look(each.version)}>Revert to version ${each.version} …</button></p>`}
      </details></li>`)}</ul>${!versions.length && html`<p class="empty">None is kept here.</p>`}`}<//>
    ${plan && html`<${Revert} name=${name} plan=${plan} close=${() => setPlan(null)} again=${again} />`}
  </section>`;
}

const revertPath = (name, version) => connectorPath(name, `/config/revert?version=${version}`);

/** The server's dry run; a secret that would go elsewhere is asked for. */
function Revert({ name, plan, close, again }) {
  const [secrets, give] = useState(/** @type {Record<string, string>} */ ({}));
  const faults = plan.verdicts.filter((each) => each.errors.length && !plan.needed.includes(each.name));
  const apply = async () => {
    try {
      await ask({ method: "POST", path: revertPath(name, plan.to), body: { secrets }, headers: { "if-match": `"${plan.version}"` } });
    } finally {
      again();
    }
  };
  return html`<${Confirm} title=${`Revert ${name} to version ${plan.to}`} action="Revert" run=${apply} close=${close} isReady=${!faults.length && plan.needed.every((each) => secrets[each])}
      consequences=${[BEGINS, ...(plan.kept.length ? [`Stays as it is now: ${plan.kept.join(", ")}.`] : [])]}>
    <${Differences} differences=${plan.changes} show=${textOf} />
    ${plan.problem && html`<${Notice} tone="warn" text=${plan.problem} />`}
    ${plan.needed.map((each) => html`<${Secret} name=${each} set=${(value) => give({ ...secrets, [each]: value })} />`)}<//>`;
}

function Secret({ name, set }) {
  const id = useId();
  return html`<div class="field"><label for=${id}><code>${name}</code>, given again</label><input id=${id} type="password" autocomplete="new-password" onInput=${(event) => set(event.target.value)} /></div>`;
}
