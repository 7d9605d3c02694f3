/** Where to go, by what a person means: each fills in the form, and the server then says what would follow. */
import { connectorPath, get } from "../../api.js";
import { bytes, lsn, time } from "../../format.js";
import { html, useId, useState } from "../../html.js";
import { Outcome, useOutcome } from "../../actions.js";
import { lsnText } from "./form.js";

/** @param {{name: string, draft: import("./draft.js").Draft, positions: Record<string, string>}} props */
export function Intents({ name, draft, positions }) {
  const places = [
    ["log", "Where the log ends", "What has been taken so far. Nothing is skipped, no table is copied again."],
    ["kept", "As far back as the slot keeps", "The oldest place from which the source can still send."],
    ["source", "The end of the source", "Skips what is not logged yet: every table is copied again."],
  ].filter(([key]) => positions[key]);
  if (!places.length) return null;
  return html`<div class="body stack">
    <h3>Go to …</h3>
    <div class="intents">${places.map(([key, label, about]) => html`<button type="button" class="intent" onClick=${() => draft.moveTo(positions[key], key)}>
      <span class="strong">${label}</span> <code>${positions[key]}</code><span class="small soft">${about}</span></button>`)}</div>
    <div class="cols"><${ByCount} name=${name} draft=${draft} /><${ByTime} name=${name} draft=${draft} /></div>
    <${ByHand} draft=${draft} positions=${positions} />
  </div>`;
}

/** So many transactions before the newest of the log. */
function ByCount({ name, draft }) {
  const [text, set] = useState("10");
  const { busy, outcome, run } = useOutcome();
  const id = useId();
  const find = (event) => {
    event.preventDefault();
    run(async () => {
      const back = Math.max(1, Math.min(10000, Number(text) || 1));
      const { oldest, newest } = await get(connectorPath(name, "/log"));
      if (!oldest || newest - back < oldest) return "the log has fewer transactions";
      const { transaction: found } = await get(connectorPath(name, `/log/transactions/${newest - back}?limit=1`));
      draft.moveTo(found.position);
      return `transaction ${found.seq}, committed ${time(found.committed, { ms: true })}`;
    });
  };
  return html`<form class="field" onSubmit=${find}><label for=${id}>Back by transactions</label>
    <div class="row nowrap-row"><input id=${id} type="number" min="1" max="10000" value=${text} onInput=${(event) => set(event.target.value)} /><button class="button" disabled=${busy}>Find</button></div>
    <${Outcome} outcome=${outcome} busy=${busy} doing="looking …" /></form>`;
}

/** The last cut that had been committed by then. */
function ByTime({ name, draft }) {
  const [text, set] = useState("");
  const { busy, outcome, run } = useOutcome();
  const id = useId();
  const find = (event) => {
    event.preventDefault();
    run(async () => {
      const at = Date.parse(`${text}Z`);
      if (Number.isNaN(at)) return "choose a day and a time";
      const [cut] = await get(connectorPath(name, `/cuts?limit=1&tables=false&to=${new Date(at).toISOString()}`));
      if (!cut) return "no cut that is kept is so old";
      draft.moveTo(cut.position);
      return `cut of ${time(cut.committed, { ms: true, date: true })}`;
    });
  };
  return html`<form class="field" onSubmit=${find}><label for=${id}>To a time, UTC</label>
    <div class="row nowrap-row"><input id=${id} type="datetime-local" step="1" value=${text} onInput=${(event) => set(event.target.value)} /><button class="button" disabled=${busy}>Find</button></div>
    <${Outcome} outcome=${outcome} busy=${busy} doing="looking …" /></form>`;
}

/** The edit as a mark that can be moved, between the oldest place that is kept and the end of the source. */
function ByHand({ draft, positions }) {
  const least = lsn(positions.kept) ?? lsn(positions.lake);
  const most = lsn(positions.source) ?? lsn(positions.log);
  const id = useId();
  if (least === null || most === null || most <= least) return null;
  const now = draft.body.offsets?.[0]?.offset?.lsn;
  const at = Number.isInteger(now) ? Math.min(most, Math.max(least, now)) : most;
  return html`<div class="field"><label for=${id}>Move the mark</label>
    <input id=${id} type="range" min=${least} max=${most} step="8" value=${at} aria-valuetext=${lsnText(at)} onInput=${(event) => draft.moveTo(lsnText(Number(event.target.value)))} />
    <span class="help row apart"><span>${lsnText(least)}</span><span>${bytes(most - least)} that the source can send</span><span>${lsnText(most)}</span></span></div>`;
}
