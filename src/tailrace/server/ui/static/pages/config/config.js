/** A connector's configuration: changed in a form or as JSON, checked while one types, compared before it is stored. */
import { ask, connectorPath } from "../../api.js";
import { refusedHere } from "../../command.js";
import { time } from "../../format.js";
import { html, useEffect, useId, useRef, useState } from "../../html.js";
import { useKnown } from "../../shared.js";
import { useResource } from "../../store.js";
import { CopyAs } from "../../parts/copying.js";
import { Confirm } from "../../parts/dialog.js";
import { Differences, differencesOf } from "../../parts/diff.js";
import { Failure, Notice, Shown } from "../../parts/notice.js";
import { MASK, shownOf, useConfigDraft, yamlOf } from "./draft.js";
import { BEGINS, History, textOf } from "./history.js";
import { Properties } from "./properties.js";

const LIFE = ["LifeChanged", "StateChanged"];
const versionOf = (etag) => Number(/\d+/.exec(etag ?? "")?.[0] ?? 0);

export function Configuration({ name }) {
  const stored = useResource(connectorPath(name, "/config"), { connector: name, kinds: LIFE });
  const history = useResource(connectorPath(name, "/config/history?limit=50"), { connector: name, kinds: LIFE });
  const again = () => {
    stored.reload();
    history.reload();
  };
  return html`<${Shown} of=${stored} what="Configuration">${() => html`<${Editor} name=${name} stored=${stored} history=${history} again=${again} />
    <${History} name=${name} history=${history} again=${again} />`}<//>`;
}

function Editor({ name, stored, history, again }) {
  const held = useRef(stored);
  const draft = useConfigDraft(held.current.data, name);
  const [asJson, show] = useState(false);
  const [isSaving, save] = useState(false);
  const { server } = useKnown();
  // What a person changes stays compared with what it was made from, until that person has seen the other edit.
  if (!draft.isChanged || held.current.etag === stored.etag) held.current = stored;
  const { data, etag } = held.current;
  const version = versionOf(etag);
  const sql = useSql(name, etag);
  const isOld = etag !== stored.etag;
  useEffect(() => save(false), [isOld]);
  const keep = () => {
    held.current = stored;
    again();
  };
  const forget = () => {
    draft.forget();
    keep();
  };
  const rule = refusedHere(server, "configure") ?? (!draft.isChanged ? "nothing is changed yet" : isOld ? "another edit came first" : draft.fault ? "the JSON cannot be read" : draft.isAsking ? "being checked …" : draft.faults ? `not right yet: ${draft.faults}` : null);
  const request = { method: "PUT", path: connectorPath(name, "/config"), headers: { "if-match": etag } };
  const store = async () => {
    try {
      await ask({ ...request, body: draft.config });
    } catch (error) {
      // The page shows the other edit, and the ways on from it.
      if (/** @type {any} */ (error).status === 409) again();
      throw error;
    }
    forget();
  };
  return html`<section class="card"><header><h2>Version ${version}</h2><div class="row">
      <button type="button" class="chip" aria-pressed=${String(asJson)} onClick=${() => { show(!asJson); draft.setText(null); }}>As JSON</button>
      <${CopyAs} label="Export as …" request=${{ ...request, headers: undefined, body: data }} yaml=${yamlOf(data)} sql=${sql} /></div></header>
    ${isOld && html`<div class="body"><${OtherEdit} others=${(history.data ?? []).filter((each) => each.version > version)} keep=${keep} forget=${forget} /></div>`}
    <div class="body stack wide">${draft.error && html`<${Failure} error=${draft.error} />`}${asJson ? html`<${Json} draft=${draft} />` : html`<${Properties} draft=${draft} />`}</div>
    <footer class="row"><button type="button" class="button main" disabled=${!!rule} onClick=${() => save(true)}>Store …</button>
      ${draft.isChanged && html`<button type="button" class="button" onClick=${forget}>Undo my changes</button>`}<span class="small soft" role="status">${rule}</span></footer>
    ${isSaving && !isOld && html`<${Confirm} title=${`Change the configuration of ${name}`} action="Store it" consequences=${[BEGINS]} run=${store} close=${() => save(false)}>
      <${Differences} differences=${differencesOf(draft.base, shownOf(draft, "given again"))} show=${textOf} /><${CopyAs} request=${{ ...request, body: shownOf(draft) }} /><//>`}
  </section>`;
}

/** The statement that makes it, for one version. */
function useSql(name, etag) {
  const [sql, set] = useState("");
  useEffect(() => {
    ask({ method: "POST", path: "/sql", body: { sql: `SHOW CREATE SOURCE "${name.replaceAll('"', '""')}"` } }).then(({ data }) => set(`${data.results[0].rows[0][1]};`), () => set(""));
  }, [name, etag]);
  return sql;
}

function Json({ draft }) {
  const id = useId();
  return html`<div class="field"><label for=${id}>As JSON; <code>${MASK}</code> keeps a secret as it is</label>
    <textarea id=${id} rows=${Math.min(30, draft.text.split("\n").length + 1)} spellcheck=${false} value=${draft.text} onInput=${(event) => draft.setText(event.target.value)}></textarea>
    <span role="status"><span class="fault">${draft.fault}</span>${Object.entries(draft.infos).map(([key, { value }]) => value.errors.map((each) => html`<p class="fault"><code>${key}</code> ${each}</p>`))}</span></div>`;
}

/** Another edit came while this one was being made: who, when, what; and the ways on. */
function OtherEdit({ others, keep, forget }) {
  return html`<${Notice} tone="warn" text="This configuration was changed meanwhile. Nothing of yours is stored." action=${html`<button type="button" class="button small main" onClick=${forget}>Start again from it</button>
      <button type="button" class="button small" onClick=${keep}>Put my changes on top</button>`}>
    ${others.map((each) => html`<p class="small">Version ${each.version} by <strong>${each.who ?? "someone"}</strong>, ${time(each.time, { date: true })}</p><${Differences} differences=${each.changes} show=${textOf} />`)}<//>`;
}
