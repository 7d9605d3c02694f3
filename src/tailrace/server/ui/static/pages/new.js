/** A new connector: an address, what the database lacks, its tables, a last look, and it begins. */
import { Outcome, useOutcome } from "../actions.js";
import { ask } from "../api.js";
import { refusedHere } from "../command.js";
import { bytes, count } from "../format.js";
import { html, useId, useState } from "../html.js";
import { go, linkTo } from "../router.js";
import { useKnown } from "../shared.js";
import { CopyAs } from "../parts/copying.js";
import { Hint, Notice } from "../parts/notice.js";
import { Shape } from "../parts/state.js";
import { shownOf, useConfigDraft, yamlOf } from "./config/draft.js";
import { Properties } from "./config/properties.js";

const HOST = "database.hostname";
const PASSWORD = "database.password";
const INCLUDE = "table.include.list";
const EXCLUDE = "table.exclude.list";
/** Property, label, and what is meant where nothing is given. */
const FIELDS = [[HOST, "Host, or a whole address", "127.0.0.1"], ["database.port", "Port", "5432"], ["database.dbname", "Database", ""], ["database.user", "User", ""], [PASSWORD, "Password", ""]];
const HIDDEN = ["name", ...FIELDS.map(([key]) => key)];
const SHOWN_MAX = 300;
const MARKS = { true: ["check", "good", "fine"], false: ["cross", "bad", "has to be mended"], null: ["triangle", "warn", "worth knowing"] };
const NOTHING = {};

export function NewConnector() {
  const { connectors, server } = useKnown();
  const draft = useConfigDraft(NOTHING, null);
  const [typed, type] = useState("");
  const [found, setFound] = useState(/** @type {any} */ (null));
  const asking = useOutcome();
  const making = useOutcome();
  const { config } = draft;
  const name = typed || config["database.dbname"] || "";
  const of = () => JSON.stringify([name, config]);
  const examine = () => asking.run(async () => {
    const { data } = await ask({ method: "POST", path: "/source/examine", body: { config: { ...config, name: name || "new" }, limit: 10000 } });
    setFound({ ...data, of: of() });
  });
  const begin = () => making.run(async () => {
    await ask({ method: "POST", path: "/connectors", body: { name, config } });
    go(linkTo(name));
  });
  const [first] = found?.checks ?? [];
  const rule = refusedHere(server, "create") ?? (!name ? "it has no name yet" : connectors.data?.[name] ? "there is a connector of this name" : null);
  const shown = shownOf(draft);
  return html`<div class="head"><div class="title"><h1 tabindex="-1">New connector</h1></div></div>
    <form class="card" onSubmit=${(event) => { event.preventDefault(); examine(); }}><header><h2>1. The database</h2></header>
      <div class="body stack"><div class="cols">${FIELDS.map(([key, label, meant]) => html`<${Field} key=${key} label=${label} meant=${meant} type=${key === PASSWORD ? "password" : "text"} value=${config[key] ?? ""} set=${(text) => draft.set(key === HOST ? partsOf(text) : { [key]: text || null })} />`)}</div>
        <p class="small soft"><code>${"${env:NAME}"}</code> or <code>${"${file:PATH}"}</code> in place of the password keeps it out of the server's state.</p>
        ${first && (first.ok ? html`<p class="good" role="status">✓ reached</p>` : html`<${Notice} tone="bad" text=${first.found} hint=${first.hint} />`)}</div>
      <footer class="row"><button class="button main" disabled=${asking.busy}>Examine</button><${Outcome} ...${asking} doing="asking the database …" /></footer></form>
    ${first?.ok && html`<${Checks} checks=${found.checks} again=${examine} busy=${asking.busy} /><${Tables} found=${found} draft=${draft} />
      <section class="card"><header><h2>4. A last look</h2><${CopyAs} label="As SQL or curl …" request=${{ method: "POST", path: "/connectors", body: { name, config: shown } }} sql=${found.of === of() ? found.sql : "-- something was changed since: examine again for the statement"} /></header>
        <div class="body stack"><${Field} label="Name of the connector" meant="" value=${name} set=${type} /><pre class="paste" tabindex="0">${yamlOf({ name, ...shown })}</pre>
          <details><summary>More properties</summary><div class="others stack"><${Properties} draft=${draft} hidden=${HIDDEN} /></div></details></div>
        <footer class="row"><button type="button" class="button main" disabled=${!!rule || making.busy} onClick=${begin}>Begin</button>
          <span class="small soft">${rule ?? (found.ready ? "Its first copy begins at once." : "Some checks have failed: it begins, and says what it waits for.")}</span><${Outcome} ...${making} /></footer></section>`}`;
}

/** A whole address that is pasted, taken apart: only its password is a secret. */
function partsOf(text) {
  const [, user, password, host, port, dbname] = /^\w+:\/\/(?:([^:@/]*)(?::([^@/]*))?@)?(\[[^\]]*\]|[^:/?@]*)(?::(\d+))?\/([^?]+)$/.exec(text) ?? [];
  if (!dbname) return { [HOST]: text || null };
  const parts = { [HOST]: host.replace(/[[\]]/g, ""), "database.port": port, "database.user": user, [PASSWORD]: password, "database.dbname": dbname };
  return Object.fromEntries(Object.entries(parts).filter(([, each]) => each).map(([key, each]) => [key, decodeURIComponent(each)]));
}

function Field({ label, meant, value, set, type = "text" }) {
  const id = useId();
  return html`<div class="field"><label for=${id}>${label}</label><input id=${id} type=${type} autocomplete=${type === "password" ? "new-password" : "off"} spellcheck=${false} placeholder=${meant} value=${value} onInput=${(event) => set(event.target.value)} /></div>`;
}

/** What the doctor found, what needs a person first. */
function Checks({ checks, again, busy }) {
  const bad = checks.filter((each) => each.ok === false);
  const failed = bad.filter((each) => !each.leaves_out).length;
  const rank = (each) => [false, null, true].indexOf(each.ok);
  return html`<section class="card"><header><h2>2. What it needs</h2><div class="row"><span class=${failed ? "bad" : "good"} role="status">${failed ? `${failed} of ${checks.length} checks failed` : bad.length ? "ready, but some tables are left out" : "ready"}</span>
      <button type="button" class="button small" disabled=${busy} onClick=${again}>Examine again</button></div></header>
    <ul class="checks">${[...checks].sort((a, b) => rank(a) - rank(b)).map((each) => {
      const [shape, tone, word] = MARKS[String(each.ok)];
      return html`<li><div class="row ${tone}"><${Shape} name=${shape} /><span class="unseen">${word}</span><span class="strong">${each.name}</span> <span class="break">${each.found}</span></div>${each.hint && html`<${Hint} text=${each.hint} />`}</li>`;
    })}</ul></section>`;
}

function Tables({ found, draft }) {
  const [search, find] = useState("");
  const listed = (key) => draft.config[key]?.split(",") ?? [];
  const [included, excluded] = [listed(INCLUDE), listed(EXCLUDE)];
  const isChosen = (table) => (!included.length || included.includes(table.expression)) && !excluded.includes(table.expression);
  const shown = found.tables.filter((each) => each.table.toLowerCase().includes(search.toLowerCase()));
  // The shorter list: who leaves a few tables out wants those that are made later.
  const choose = (wanted) => {
    const taken = found.tables.filter(wanted);
    const left = found.tables.filter((each) => !wanted(each));
    const text = (tables) => tables.map((each) => each.expression).join(",") || null;
    draft.set(left.length < taken.length ? { [INCLUDE]: null, [EXCLUDE]: text(left) } : { [INCLUDE]: text(taken), [EXCLUDE]: null });
  };
  const more = found.tables_total - Math.min(shown.length, SHOWN_MAX);
  return html`<section class="card"><header><h2>3. Which tables</h2><div class="row"><span class="small soft">${included.length ? `${count(found.tables.filter(isChosen).length)} of ${count(found.tables_total)}` : `all${excluded.length ? ` but ${count(excluded.length)}` : ""}, and those that are made later`}</span>
      <button type="button" class="button small" onClick=${() => draft.set({ [INCLUDE]: null, [EXCLUDE]: null })}>All</button><button type="button" class="button small" disabled=${!search} onClick=${() => choose((each) => shown.includes(each))}>Only what is found</button>
      <input type="search" class="search" aria-label="Find a table" placeholder="Find a table" value=${search} onInput=${(event) => find(event.target.value)} /></div></header>
    <div class="scroll" tabindex="0" role="group" aria-label="Tables"><table><thead><tr><th scope="col">Table</th><th scope="col" class="num">Rows, about</th><th scope="col" class="num">Size, about</th><th scope="col">Key</th><th scope="col">Problem</th></tr></thead>
      <tbody>${shown.slice(0, SHOWN_MAX).map((each) => html`<tr key=${each.table}><td><label class="check nowrap"><input type="checkbox" checked=${isChosen(each)} onChange=${(event) => choose((one) => (one === each ? event.target.checked : isChosen(one)))} />${each.table}</label></td>
        <td class="num">${count(each.rows)}</td><td class="num">${bytes(each.bytes)}</td><td class="break">${each.key.join(", ") || html`<span class="warn">none</span>`}</td>
        <td class="problem">${each.problem && html`<span class="bad">${each.problem}</span><${Hint} text=${each.hint} />`}</td></tr>`)}</tbody></table></div>
    ${more > 0 && !search && html`<p class="small soft">${count(more)} more: find them by name, or name them in ${INCLUDE}.</p>`}</section>`;
}
