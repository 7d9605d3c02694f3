/** What happened to a connector: one list of states, tables, copies, edits, configurations, troubles and errors. */
import { connectorPath } from "../api.js";
import { time } from "../format.js";
import { html, useState } from "../html.js";
import { linkTo } from "../router.js";
import { useResource } from "../store.js";
import { CopyAs } from "./copying.js";
import { Hint, Empty, Shown } from "./notice.js";
import { Pager } from "./sheet.js";
import { State } from "./state.js";

const KINDS = ["LifeChanged", "StateChanged", "TroubleChanged", "TableChanged", "CopyNotified", "TablesLanded"];
/** Kind: what stands before the text; the shape where the entry has no state of its own. */
const WORDS = {
  state: ["Connector", ""], table: ["Table", ""], copy: ["Copy", ""], offsets: ["Offsets", ""], configuration: ["Configuration", "stored"],
  trouble: ["Trouble", "began"], source: ["Source", "prepared"], warning: ["Warning", "warning"], error: ["Error", "error"],
};
const TABS = { copy: "copies", offsets: "offsets", table: "tables", configuration: "config", warning: "messages", error: "messages" };

/** @param {{name: string, limit?: number, isAll?: boolean, tabs?: string[]}} props `tabs`: pages that may be linked. */
export function Feed({ name, limit = 20, isAll = false, tabs = [] }) {
  const [before, go] = useState(/** @type {string | null} */ (null));
  const path = connectorPath(name, `/feed?limit=${limit}${before ? `&before=${encodeURIComponent(before)}` : ""}`);
  const found = useResource(path, before ? {} : { connector: name, kinds: KINDS, everySeconds: 30, fastest: 2000 });
  return html`<section class="card" aria-label="What happened"><header><h2>What happened</h2>
      <div class="row">${!isAll && tabs.includes("feed") && html`<a class="button small" href=${linkTo(name, "feed")}>All of it</a>`}<${CopyAs} request=${{ method: "GET", path }} /></div></header>
    <${Shown} of=${found} what="What happened">${({ entries, next }) => html`${entries.length
      ? html`<ul class=${isAll ? "feed whole" : "feed"} tabindex=${isAll ? undefined : "0"}>${entries.map((each) => html`<${Entry} name=${name} entry=${each} tabs=${tabs} />`)}</ul>`
      : html`<${Empty} title="Nothing yet"><p>States, copies, edits and errors are listed here as they happen.</p><//>`}
      ${isAll && html`<${Pager} before=${before} next=${next} go=${go} text="Who pressed pause, resume or stop is not kept. States and errors reach as far back as the connector's messages." />`}`}<//>
  </section>`;
}

function Entry({ name, entry, tabs }) {
  const [word, state] = WORDS[entry.kind] ?? [entry.kind, "info"];
  const what = entry.table ?? word;
  const to = tabs.includes(TABS[entry.kind]) ? linkTo(name, TABS[entry.kind], entry.kind === "table" ? { search: entry.table } : {}) : null;
  return html`<li><span class="nowrap soft">${time(entry.at)}</span><span><${State} of=${entry.state ?? state} quiet /></span>
    <div class="break">${to ? html`<a href=${to}>${what}</a>` : html`<span class="strong">${what}</span>`} ${entry.text}${entry.who && html` <span class="soft">by ${entry.who}</span>`}
      ${entry.hint && html`<${Hint} text=${entry.hint} />`}</div></li>`;
}
