/** SQL over all tables of one cut: now, at every new cut, or as of any moment that is kept. */
import { ask, connectorPath, part } from "../api.js";
import { counted, seconds, time } from "../format.js";
import { html, useCallback, useEffect, useRef, useState } from "../html.js";
import { useClock, useResource } from "../store.js";
import { CopyAs, quoted } from "../parts/copying.js";
import { Failure, Hint } from "../parts/notice.js";
import { csvOf, Rows } from "../parts/rows.js";
import { State } from "../parts/state.js";
import { Pinning, queryRequest, useAtCuts } from "../parts/pins.js";

const TABLES_MAX = 100;
const KEPT_MAX = 2000;
const MODES = [["newest", "Newest commit"], ["published", "Published"], ["at", "Time or position"], ["slide", "Slide back"]];
const askedOf = ({ mode, at }) => (mode === "published" ? { published: true } : mode !== "newest" && at.trim() ? { as_of: at.trim() } : {});
const named = (text) => (/^[a-z_][a-z0-9_]*$/.test(text) ? text : `"${text.replaceAll('"', '""')}"`);

export function Query({ name, route: { query } }) {
  const kept = `tailrace-sql/${name}`;
  const [sql, setSql] = useState(() => query.get("sql") ?? localStorage.getItem(kept) ?? "show tables");
  const [moment, setMoment] = useState({ mode: query.get("as_of") ? "at" : "newest", at: query.get("as_of") ?? "" });
  const [follows, setFollows] = useState(false);
  const area = useRef(null);
  const { answer, error, since, ask: send, stop } = useAsking(name);
  const run = (when = moment) => {
    localStorage.setItem(kept, sql);
    return send(sql, askedOf(when));
  };
  const choose = (next) => {
    setMoment(next);
    setFollows(false);
    if (next.mode === "slide" && next.at) run(next);
  };
  const follow = () => {
    choose({ mode: "newest", at: "" });
    setFollows(!follows);
  };
  useAtCuts(name, follows, run);
  const insert = (text) => {
    setSql(sql.slice(0, area.current.selectionStart) + text + sql.slice(area.current.selectionEnd));
    area.current.focus();
  };
  const key = (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    run();
  };
  return html`<div class="asking"><${Catalog} name=${name} insert=${insert} /><div class="stack">
    <section class="card"><div class="body stack">
        <div class="field"><label for="sql">SQL of DuckDB; every table is as of the same commit</label>
          <textarea id="sql" ref=${area} rows="6" spellcheck=${false} value=${sql} onInput=${(event) => setSql(event.target.value)} onKeyDown=${key}></textarea></div>
        <${Moments} name=${name} moment=${moment} choose=${choose} /></div>
      <footer class="row apart"><span class="row"><button type="button" class="button main" title="Ctrl-Enter" onClick=${() => run()}>Run</button>
          <button type="button" class="button" disabled=${!since} onClick=${stop}>Stop</button>
          <button type="button" class="button" aria-pressed=${String(follows)} onClick=${follow}>${follows ? "Following each cut" : "Follow"}</button><${Passed} since=${since} /></span>
        <span class="row"><${Pinning} name=${name} sql=${sql} answer=${answer} /><${Ways} name=${name} sql=${sql} asked=${askedOf(moment)} /></span></footer></section>
    ${error && html`<div class="notice bad" role="alert"><span></span><div><pre class="paste">${error.message}</pre>${error.hint && html`<${Hint} text=${error.hint} />`}</div></div>`}
    ${answer && html`<section class="card" aria-label="Result"><div class="body stack ${error ? "faint" : ""}"><${Rows} answer=${answer} />
      <div class="row"><button type="button" class="button small" onClick=${() => download(name, answer)}>Download CSV</button></div></div></section>`}
  </div></div>`;
}

/** One query at a time, with an id, by which Stop ends it on the server too. Of those that wait, the last is asked. */
function useAsking(name) {
  const [state, set] = useState({});
  const now = useRef({}).current;
  const send = useCallback(async (sql, more) => {
    now.next = [sql, more];
    while (now.next && !now.id) {
      const [text, how] = now.next;
      now.next = null;
      now.id = `console-${Math.random().toString(36).slice(2)}`;
      set((before) => ({ ...before, since: Date.now() }));
      const found = await ask(queryRequest(name, text, { ...how, id: now.id })).then(({ data }) => ({ answer: data, error: null }), (error) => ({ error }));
      now.id = null;
      set((before) => ({ ...before, ...found, since: null }));
    }
  }, [name]);
  const stop = useCallback(() => {
    now.next = null;
    // It may have ended meanwhile, and then there is nothing to stop.
    if (now.id) ask({ method: "DELETE", path: `/query/${now.id}` }).catch(() => {});
  }, []);
  useEffect(() => stop, []);
  return { ...state, ask: send, stop };
}

function Passed({ since }) {
  const passed = (useClock(200) - (since ?? Infinity)) / 1000;
  return html`<span class="outcome" role="status">${passed > 0.3 && html`<span class="spin"></span>running for ${seconds(passed)}`}</span>`;
}

/** The tables that can be asked, each with its state, and with its columns where it is opened. */
function Catalog({ name, insert }) {
  const [search, set] = useState("");
  const { data, error } = useResource(connectorPath(name, `/tables?limit=${TABLES_MAX}&search=${part(search)}`), { connector: name, kinds: ["TableChanged"] });
  return html`<div class="card catalog"><div class="body stack"><input type="search" aria-label="Search tables" placeholder="Tables …" value=${search} onInput=${(event) => set(event.target.value)} />
    ${error ? html`<${Failure} error=${error} what="Tables" />` : data?.map((each) => html`<${Table} key=${each.table} name=${name} of=${each} insert=${insert} />`)}</div></div>`;
}

function Table({ name, of: { table, state, reason }, insert }) {
  const [isOpen, open] = useState(false);
  const { data } = useResource(isOpen ? connectorPath(name, `/tables/${part(table)}`) : null);
  const word = (text) => html`<button type="button" class="linklike break" onClick=${() => insert(text)}>${text}</button>`;
  return html`<details onToggle=${(event) => open(event.target.open)}><summary class="break" title=${state}><${State} of=${state} word="" />${table}</summary>
    ${isOpen && html`<div class="columns small">${state}${reason && `: ${reason}`} ${word(table.split(".").length === 2 ? table.split(".").map(named).join(".") : named(table))}
      ${data?.schemas?.at(-1)?.columns.map((each) => html`<span>${word(named(each.name))} <span class="faint">${each.type}</span></span>`)}</div>`}</details>`;
}

function Moments({ name, moment: { mode, at }, choose }) {
  return html`<div class="chips" role="group" aria-label="As of">${MODES.map(([each, label]) => html`<button type="button" class="chip" aria-pressed=${String(each === mode)} onClick=${() => choose({ mode: each, at })}>${label}</button>`)}</div>
    ${mode === "at" && html`<input class="mono" aria-label="As of" maxlength="100" placeholder="2026-11-19 12:00 (UTC), or a position" value=${at} onInput=${(event) => choose({ mode, at: event.target.value })} />`}
    ${mode === "slide" && html`<${Slider} name=${name} at=${at} choose=${(found) => choose({ mode, at: found })} />`}`;
}

function Slider({ name, at, choose }) {
  const { data, error } = useResource(connectorPath(name, `/cuts?tables=false&limit=${KEPT_MAX}`), { connector: name, kinds: ["CutPublished"], fastest: 5000 });
  const kept = [...(data ?? [])].reverse();
  if (!kept.length) return error ? html`<${Failure} error=${error} what="Cuts" />` : "no cut yet";
  const place = at ? kept.findIndex((each) => each.position === at) : kept.length - 1;
  const said = place < 0 ? `as of ${at}` : time(kept[place].committed, { ms: true });
  return html`<div class="field"><label for="slide">${said}</label>
    <input id="slide" type="range" min="0" max=${kept.length - 1} value=${place} aria-valuetext=${said} onInput=${(event) => choose(kept[event.target.value].position)} />
    <span class="help">${counted(kept.length, "kept cut")} since ${time(kept[0].committed)}</span></div>`;
}

function Ways({ name, sql, asked }) {
  const { published, as_of: at } = asked;
  const cli = `tailrace query LAKE ${quoted(sql)}${published ? " --published" : at ? ` --as-of ${quoted(at)}` : ""}`;
  return html`<${CopyAs} request=${queryRequest(name, sql, asked)} cli=${cli} />`;
}

function download(name, answer) {
  const href = URL.createObjectURL(new Blob([csvOf(answer)]));
  Object.assign(document.createElement("a"), { href, download: `${name}-${answer.seq}.csv` }).click();
  setTimeout(() => URL.revokeObjectURL(href), 1e4);
}
