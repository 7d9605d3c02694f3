/** Offsets: how far the connector has got, a dry run of any change in any state, the change, its history and its undo. */
import { connectorPath } from "../../api.js";
import { html, useEffect, useState } from "../../html.js";
import { useKnown, useSource } from "../../shared.js";
import { useResource } from "../../store.js";
import { CopyAs } from "../../parts/copying.js";
import { Distance } from "../../parts/distance.js";
import { Empty, Shown } from "../../parts/notice.js";
import { Applying } from "./applying.js";
import { dryRun, useDraft } from "./draft.js";
import { Assessment } from "./assessment.js";
import { OffsetForm } from "./form.js";
import { History } from "./history.js";
import { Intents } from "./intents.js";
import { ImportCard, ResetCard } from "./whole.js";

const LIFE = ["LifeChanged", "StateChanged"];

export function Offsets({ name, progress }) {
  const offsets = useResource(connectorPath(name, "/offsets"), { connector: name, kinds: [...LIFE, "CutPublished"], fastest: 3000 });
  const history = useResource(connectorPath(name, "/offsets/history"), { connector: name, kinds: LIFE });
  const again = () => {
    offsets.reload();
    history.reload();
  };
  return html`<${Shown} of=${offsets} what="Offsets">${({ offsets: entries }) => html`
    ${entries.length
      ? html`<${Editor} name=${name} entries=${entries} progress=${progress} history=${history} again=${again} />`
      : html`<div class="card"><${Empty} title="No offset yet"><p>The connector has not begun to read its source, or its offset was reset: the next start copies every table.</p><//></div>`}
    <${History} name=${name} history=${history} progress=${progress} again=${again} />
    <div class="cols"><${ResetCard} name=${name} progress=${progress} again=${again} isThere=${entries.length > 0} />
      <${ImportCard} name=${name} progress=${progress} again=${again} /></div>`}<//>`;
}

function Editor({ name, entries, progress, history, again }) {
  const schema = useResource(connectorPath(name, "/offsets/schema"));
  const draft = useDraft(name, entries, progress.data?.state);
  const source = useSource(name, progress.data);
  const { server } = useKnown();
  const [applied, setApplied] = useState(/** @type {any} */ (null));
  const here = useHere(name, entries, progress.data?.state);
  const positions = { ...here, ...draft.assessment?.positions };
  const mark = draft.isChanged && positions.edit ? { position: positions.edit, label: "The edit goes to" } : null;
  const finish = (message) => {
    setApplied(message);
    draft.forget();
    again();
  };
  return html`<section class="card hero"><div class="body stack">
      <p class="sentence">${sentence(entries)}</p>
      <${Distance} progress=${progress.data} source=${source.data} mark=${mark} />
    </div></section>
    <section class="card"><header><h2>Change the offset</h2>
        <div class="row"><span class="small soft">Reading and dry runs are safe at any time. A change is made while the connector is stopped.</span>
        <${CopyAs} request=${{ method: "GET", path: connectorPath(name, "/offsets") }} cli="tailrace offsets get LAKE" label="Copy reading as …" /></div></header>
      <${Intents} name=${name} draft=${draft} positions=${positions} />
      <div class="body"><${OffsetForm} draft=${draft} schema=${schema.data} /></div>
      <div class="body"><${Assessment} draft=${draft} /></div>
      <footer><${Applying} name=${name} draft=${draft} progress=${progress.data} server=${server} history=${history} finish=${finish} again=${again} applied=${applied} /></footer>
    </section>`;
}

/** Between which positions the source can send, before anything is changed. */
function useHere(name, entries, state) {
  const [positions, set] = useState({});
  useEffect(() => {
    if (!state) return;
    dryRun(name, { offsets: entries }).then((found) => set(found.positions), () => set({}));
  }, [name, state]);
  return positions;
}

function sentence(entries) {
  const [{ partition, offset }] = entries;
  const about = Object.entries(partition).map(([key, found]) => html`<code>${key} ${String(found)}</code>`);
  if (entries.length > 1) return html`${entries.length} partitions have offsets.`;
  return html`The offset of ${about} ${offset?.incremental_snapshot_collections ? "has an incremental snapshot under way." : "says how far the source has been read."}`;
}
