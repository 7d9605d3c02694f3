/** The offset as a whole: forgotten, or taken over from a Debezium connector. Both with their dry run on the screen. */
import { ask, connectorPath } from "../../api.js";
import { html, useId, useState } from "../../html.js";
import { useKnown } from "../../shared.js";
import { CopyAs } from "../../parts/copying.js";
import { Confirm } from "../../parts/dialog.js";
import { Failure, Notice } from "../../parts/notice.js";
import { After, versionOf } from "./applying.js";
import { Answer } from "./assessment.js";

const RULE = "only while the connector is stopped";
const FILE_BYTES_MAX = 1 << 20;

export function ResetCard({ name, progress, again, isThere }) {
  const [plan, setPlan] = useState(/** @type {any} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  const [done, setDone] = useState(/** @type {string | null} */ (null));
  const { server } = useKnown();
  const stopped = progress.data?.state === "STOPPED";
  const request = { method: "DELETE", path: connectorPath(name, "/offsets") };
  const look = () => ask({ ...request, path: `${request.path}?dry_run=true` }).then(({ data }) => setPlan(data), setError);
  const apply = async () => {
    const { data } = await ask({ ...request, headers: versionOf(plan) });
    setDone(data.message);
    again();
  };
  return html`<section class="card"><header><h2>Reset</h2><${CopyAs} request=${request} cli="tailrace offsets reset LAKE" /></header><div class="body stack">
    <p class="soft">Forgets how far the connector has got. The next start copies every table again, by windows; the lake stays readable meanwhile.</p>
    <div class="row"><button type="button" class="button danger" disabled=${!isThere} onClick=${look}>Reset …</button>${!isThere && html`<span class="small soft">there is no offset</span>`}</div>
    ${error && html`<${Failure} error=${error} />`}
    ${done && html`<${After} name=${name} text=${done} server=${server} />`}
    ${plan && html`<${Confirm} title=${`Reset the offset of ${name}`} name=${name} action="Reset" isReady=${stopped} run=${apply} close=${() => setPlan(null)}
      consequences=${[plan.consequence]}><${Answer} found=${{ ...plan, consequence: "" }} />${!stopped && html`<${Notice} tone="warn" text=${`Possible ${RULE}.`} />`}<//>`}
  </div></section>`;
}

export function ImportCard({ name, progress, again }) {
  const [content, setContent] = useState(/** @type {any} */ (null));
  const [plan, setPlan] = useState(/** @type {any} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  const [done, setDone] = useState(/** @type {string | null} */ (null));
  const [isOver, over] = useState(false);
  const { server } = useKnown();
  const id = useId();
  const stopped = progress.data?.state === "STOPPED";
  const path = connectorPath(name, "/offsets/import");
  const take = async (raw) => {
    setError(null);
    if (raw.size > FILE_BYTES_MAX) return setError({ message: "The file is larger than 1 MiB.", hint: null });
    setContent(raw);
    await ask({ method: "POST", path: `${path}?dry_run=true`, raw, headers: { "content-type": "application/octet-stream" } }).then(({ data }) => setPlan(data), setError);
  };
  const drop = (event) => {
    event.preventDefault();
    over(false);
    if (event.dataTransfer.files[0]) take(event.dataTransfer.files[0]);
  };
  const apply = async () => {
    const { data } = await ask({ method: "POST", path, raw: content, headers: { "content-type": "application/octet-stream" } });
    setDone(data.message);
    again();
  };
  return html`<section class="card"><header><h2>Move in from Debezium</h2></header><div class="body stack">
    <p class="soft">Takes over a slot where a Debezium connector stopped. Its offsets, in any of its forms:</p>
    <label for=${id} class="dropzone ${isOver ? "over" : ""}" onDragOver=${(event) => { event.preventDefault(); over(true); }} onDragLeave=${() => over(false)} onDrop=${drop}>
      <span class="strong">Drop a file here, or choose one</span><span class="small soft">the answer of GET …/offsets, records of the offsets topic, or the file of a FileOffsetBackingStore</span>
      <input id=${id} type="file" onChange=${(event) => event.target.files[0] && take(event.target.files[0])} /></label>
    ${error && html`<${Failure} error=${error} />`}
    ${done && html`<${After} name=${name} text=${done} server=${server} />`}
    ${plan && html`<${Confirm} title=${`Take over from ${plan.server}`} name=${name} action="Take over" isReady=${stopped} run=${apply} close=${() => setPlan(null)}
      consequences=${[plan.consequence, `The stream begins at ${plan.begins}.`, ...plan.notes, plan.tables_to_copy.length ? `Copied by windows: ${plan.tables_to_copy.join(", ")}.` : "No table is copied again."]}>
      ${!stopped && html`<${Notice} tone="warn" text=${`Possible ${RULE}.`} />`}<//>`}
  </div></section>`;
}
